"""A number asked for by a set, a hash, a random scale and recycled noise: node, fleet, replay and page."""

from __future__ import annotations

import json
import os
import shutil
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import hubbub
from node_fixture import World, in_round, wait_until
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from surveys import DISEASES

from hubbub import Survey
from hubbub.testing import seeded
from hubbub.wire.report import decode_surveys
from hubbub_lab.evaluation.evaluation import rows_of, truth_of
from hubbub_lab.simulation.device_simulator import DeviceSimulator

pytestmark = pytest.mark.integration

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
CHROMEDRIVER = shutil.which("chromedriver")
DEVICES = 1500
MECHANISMS = {
    "subset": 'name = "subset"',
    "hash": 'name = "local_hashing"',
    "scale": 'name = "r2dp"\nlaw = { name = "gamma", shape = 3.0 }',
    "recycled": 'name = "brdp"\nhalf_width = 15.0\nrecycling = 0.4',
}


def text_of(name: str) -> str:
    """A survey of nine points."""
    text = DISEASES.split("[mechanism]")[0] + f"[mechanism]\n{MECHANISMS[name]}\npoints = 9\n"
    assert text.count('id = "chronic-diseases"') == 1
    return text.replace('id = "chronic-diseases"', f'id = "diseases-{name}"')


def get(port: int, path: str) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as reply:
        data: bytes = reply.read()
    return data


def shown(port: int) -> dict[str, Any]:
    return {survey["id"]: survey for survey in json.loads(get(port, "/api/live"))["surveys"]}


def titles_and_means(port: int, folder: Path) -> list[str]:
    """What a browser's reader sees of each survey on the page."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ("--headless=new", "--disable-gpu", "--no-proxy-server", f"--user-data-dir={folder}"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    driver = webdriver.Chrome(options=options, service=Service(str(CHROMEDRIVER)))
    try:
        driver.get(f"http://127.0.0.1:{port}/")

        def settled(_: object) -> list[str]:
            found = [each.text for each in driver.find_elements(By.CSS_SELECTOR, "[id^=survey-] .facts")]
            return found if len(found) == len(MECHANISMS) and all("Mean" in each for each in found) else []

        return WebDriverWait(driver, 30).until(settled)
    finally:
        driver.quit()


def test_a_number_by_four_mechanisms_goes_from_devices_to_a_sealed_release_and_the_page(
    tmp_path: Path,
) -> None:
    """Seeded devices: nothing is off by more than 6 standard errors (100 figures: false alarm below 1e-6)."""
    files = []
    for name in MECHANISMS:
        files.append(tmp_path / f"{name}.toml")
        files[-1].write_text(text_of(name), encoding="utf-8")
    chance = np.random.default_rng(4)
    held: list[object] = [*np.round(60.0 * chance.beta(2, 5, DEVICES - 50), 2).tolist(), *[None] * 50]
    with World(tmp_path, [Survey.load(file) for file in files]) as world, world.living():
        port, now_s = world.port, in_round(0)
        surveys = [Survey.from_canonical(data) for data in decode_surveys(get(port, "/v1/surveys"))]
        assert {survey.id for survey in surveys} == {f"diseases-{name}" for name in MECHANISMS}
        fleet = DeviceSimulator(DEVICES, budget=20.0, source=seeded(11))
        fleet.register(surveys[0].attribute)
        fleet.set("diseases", held)
        for survey in surveys:
            assert fleet.enrol(survey, now_s=now_s).accepted.all()
        fleet.answer(now_s=now_s)
        sent = len(MECHANISMS) * DEVICES
        assert fleet.upload(f"http://127.0.0.1:{port}").outcomes == {"accepted": sent}
        world.turn(in_round(1))
        wait_until(lambda: world.sealed_rounds() == len(MECHANISMS))
        live = shown(port)
        for survey in surveys:
            release = live[survey.id]["shown"]
            assert release["devices"] == DEVICES and not release["suppressed"]
            rows = rows_of(release, truth_of(survey, held))
            assert {row.kind for row in rows} == {"value", "category", "mean"}
            for row in rows:
                assert abs(row.estimate - row.truth) < 6 * row.error, (survey.id, row.label)
        if CHROMIUM is not None and CHROMEDRIVER is not None:
            for facts in titles_and_means(port, tmp_path / "profile"):
                assert "95 % interval" in facts.replace("\u202f", " ").replace("\xa0", " ")
    people = tmp_path / "people.csv"
    lines = ["person,diseases", *(f"{i},{'' if v is None else v}" for i, v in enumerate(held))]
    people.write_text("\n".join(lines) + "\n")
    asked = [part for file in files for part in ("--survey", file)]
    done = hubbub("replay", people, *asked, "--seed", 5, "--out", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    replayed = json.loads(done.stdout)
    assert {survey.id for survey in surveys} == {each["survey"] for each in replayed}
    for each in replayed:
        assert each["release"]["devices"] == DEVICES
        for row in each["rows"]:
            assert abs(row["estimate"] - row["truth"]) < 6 * row["error"], (each["survey"], row["label"])
    # Sets have no smoothed view.
    unsmoothed = {each["survey"] for each in replayed if each["smoothed"] is None}
    assert unsmoothed == {"diseases-subset"}
