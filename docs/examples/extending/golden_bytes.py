from pathlib import Path

from hubbub import Survey

folder = Path("tests/golden")
for file in folder.glob("survey-*.toml"):
    stored = file.with_suffix(".bin")
    if not stored.exists():
        stored.write_bytes(Survey.load(file).canonical)
