"""The commands of `hubbub`, one file each; `cli` puts them together."""
