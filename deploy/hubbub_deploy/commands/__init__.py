"""The commands of `hubbub`: a file each, or a room with what one of them needs; `cli` puts them together."""
