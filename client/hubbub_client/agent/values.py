"""The values of the owner's attributes: told by the host, read by an answer, memoised or kept.

An evolving value stands in memory until it is replaced, and in the ledger too while a round waits for it. A
static value is memoised by the first answer that reads it, and changes by a correction alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from hubbub import wire
from hubbub.survey import Attribute, DictionaryDomain, Survey
from hubbub_client.agent.device_state import DeviceState, Wanted, decode_attribute
from hubbub_client.agent.encoded_value import EncodedValue, encode, pack_encoded, unpack_encoded
from hubbub_client.errors import AttributeRefusedError
from hubbub_client.ledger.stored import PastValue, StoredValue
from hubbub_client.surveys.schedule import MEMOISED, asks_for, is_static
from hubbub_client.upload.outcomes import Correction


class Values:
    """The values of one device; `Agent` says what each verb promises its host.

    Args:
        state: The device's state.
    """

    def __init__(self, state: DeviceState) -> None:
        self._state = state
        self._unpinned: dict[str, EncodedValue] = {}
        self._with_dictionary: dict[str, Attribute] = {}

    def register(self, attribute: Attribute) -> None:
        """Declare an attribute; see `Agent.register`."""
        spec = wire.pack(attribute.to_spec())
        stored = self._state.attributes.get(attribute.id)
        if stored is None:
            self._state.ledger.add_attribute(attribute.id, spec)
            self._state.refresh_attributes()
        elif stored.spec != spec:
            raise AttributeRefusedError(
                f"attribute {attribute.id!r} must be as first registered: same kind and domain"
            )
        if isinstance(attribute.domain, DictionaryDomain) and attribute.domain.hashes is not None:
            self._with_dictionary[attribute.id] = attribute

    def attribute(self, attribute_id: str) -> Attribute:
        """Return a registered attribute, by which values are looked up.

        Raises:
            AttributeRefusedError: None is registered, or its dictionary is not at hand: a text would count as
                missing, for good where it is static.
        """
        stored = decode_attribute(self._state.stored_attribute(attribute_id))
        found = self._with_dictionary.get(attribute_id, stored)
        if isinstance(found.domain, DictionaryDomain) and found.domain.hashes is None:
            raise AttributeRefusedError(
                f"attribute {attribute_id!r} must be registered with its dictionary before it has a value"
            )
        return found

    def set(self, attribute_id: str, value: object, *, now_s: float | None) -> None:
        """Take a value from now on; see `Agent.set`.

        Args:
            attribute_id: A registered attribute.
            value: The value, as the host knows it.
            now_s: Clock time, epoch seconds; None if it is not trusted, so that no round is known to wait.
        """
        stored = self._state.stored_attribute(attribute_id)
        attribute = self.attribute(attribute_id)
        encoded = encode(attribute, value)
        if stored.memoised is None:
            self._unpinned[attribute_id] = encoded
            if attribute.kind == "evolving":
                self._keep(attribute_id, pack_encoded(encoded), now_s)
        elif stored.memoised != pack_encoded(encoded):
            raise AttributeRefusedError(
                f"attribute {attribute_id!r} is static and was pinned by its first answer"
            )

    def _keep(self, attribute_id: str, value: bytes, now_s: float | None) -> None:
        """Keep an evolving value across restarts for as long as a round waits for it."""
        state = self._state
        waiting = [] if now_s is None else state.open_rounds(now_s, attribute_id)
        if now_s is not None and waiting:
            until_s = float(max(survey.round_end_s(number) for survey, number in waiting))
            known = state.kept.get(attribute_id)
            if known is None or (known.value, known.until_s) != (value, until_s):
                past = () if known is None else known.past
                self._put(StoredValue(attribute_id, value, now_s, until_s, past))
        elif (known := state.kept.get(attribute_id)) is not None and known.value is not None:
            self._put(replace(known, value=None))

    def _put(self, kept: StoredValue) -> None:
        """Keep a value in place of what was kept of its attribute, in the ledger and here."""
        self._state.ledger.keep_value(kept)
        self._note(kept)

    def _note(self, kept: StoredValue) -> None:
        """Note what the ledger keeps of an attribute."""
        if kept.value is None and not kept.past:
            self._state.kept.pop(kept.attribute, None)
        else:
            self._state.kept[kept.attribute] = kept

    def drop_unwaited(self, now_s: float, what: Literal["all", "past"] = "all") -> None:
        """Delete kept values that no round waits for any more: all, or those of earlier rounds alone."""
        state = self._state
        for attribute_id, kept in list(state.kept.items()):
            stays = what == "past" or state.open_rounds(now_s, attribute_id)
            past = tuple(each for each in kept.past if state.waits_for(each.digest, each.round, now_s))
            after = replace(kept, value=kept.value if stays else None, past=past)
            if after != kept:
                self._put(after)

    def keep_past(self, now_s: float) -> None:
        """Keep the values of now that transitions will ask for in a later round, once in each round.

        Kept is what an answer of now would read. Where the host has set nothing yet, nothing is kept, and a
        later call in the same round may.
        """
        self.drop_unwaited(now_s, "past")
        for survey, number in self._state.rounds_after_lag(now_s):
            (attribute,) = survey.attributes
            known = self._state.kept.get(attribute.id, StoredValue(attribute.id, None, now_s, now_s))
            value, place = self._of_now(attribute, now_s), (survey.digest, number)
            if value is not None and all(each[:2] != place for each in known.past):
                past = PastValue(*place, pack_encoded(value))
                self._put(replace(known, past=(*known.past, past)))

    def correct(self, attribute_id: str, value: object, *, now_s: float | None) -> Correction:
        """Replace a memoised value by another one; see `Agent.correct`.

        Args:
            attribute_id: A registered static attribute.
            value: The other value.
            now_s: Clock time, epoch seconds; None if it is not trusted.
        """
        state = self._state
        stored = state.stored_attribute(attribute_id)
        attribute = self.attribute(attribute_id)
        if attribute.kind == "evolving":
            raise AttributeRefusedError(f"attribute {attribute_id!r} is evolving: set its value")
        if stored.memoised is None:
            self.set(attribute_id, value, now_s=now_s)
            return Correction(attribute_id, "corrected")
        memoised = pack_encoded(encode(attribute, value))
        if memoised == stored.memoised:
            return Correction(attribute_id, "unchanged")
        if now_s is None:
            return Correction(attribute_id, "refused", "clock_not_trusted")
        pin_version = stored.pin_version + 1
        rows = state.reserve(self._to_answer_anew(attribute_id, pin_version, now_s))
        if rows is None:
            return Correction(attribute_id, "refused", "over_budget")
        state.ledger.memoise_anew(attribute_id, pin_version, memoised, rows)
        state.refresh_attributes()
        # A replay closes old coordinates between the surveys: later branches are decided on what it joins.
        state.replay()
        return Correction(attribute_id, "corrected")

    def _to_answer_anew(self, attribute_id: str, pin_version: int, now_s: float) -> list[Wanted]:
        """Return an answer of every survey that reads this attribute's memoised value in a round to come.

        Of a bundle only if its part was answered, and reads it: what waits covers every value, and a new draw
        about others would cost for nothing.
        """
        state, anew = self._state, {attribute_id: pin_version}
        return [
            (survey, MEMOISED, state.pin_version(survey, anew))
            for digest, survey in state.surveys.items()
            # With an evolving attribute a round has a value of its own, whichever was pinned.
            if asks_for(survey, attribute_id) and is_static(survey)
            if any(state.waits_for(digest, number, now_s) for number in range(survey.rounds))
            if state.pin_version(survey, anew) != state.pin_version(survey)
        ]

    def read(
        self, survey: Survey, number: int, now_s: float
    ) -> tuple[list[EncodedValue], list[tuple[str, bytes]]]:
        """Return the encoded values that an answer of a survey takes, and what it memoises.

        The latter is a list of attribute ids with packed values. Nothing changes until `answered`.

        Args:
            survey: The survey.
            number: The round to answer.
            now_s: Clock time, epoch seconds.
        """
        found, pins = self.read_now(survey.attributes, now_s)
        if survey.form.lag:
            found.insert(0, self._then(survey, number))
        return found, pins

    def read_now(
        self, attributes: Sequence[Attribute], now_s: float
    ) -> tuple[list[EncodedValue], list[tuple[str, bytes]]]:
        """Return the encoded value of now of each attribute, and what an answer with them memoises."""
        pins: list[tuple[str, bytes]] = []
        return [self._read(attribute, now_s, pins) for attribute in attributes], pins

    def _then(self, survey: Survey, number: int) -> EncodedValue:
        """Return the value that was kept for a round of a transition; missing if none was."""
        (attribute,) = survey.attributes
        kept = self._state.kept.get(attribute.id)
        for past in () if kept is None else kept.past:
            if past[:2] == (survey.digest, number):
                return unpack_encoded(attribute, past.value)
        return encode(attribute, None)

    def _read(self, attribute: Attribute, now_s: float, pins: list[tuple[str, bytes]]) -> EncodedValue:
        """Return the value to answer with; what to pin along with the answer is added to `pins`."""
        memoised = self._state.attributes[attribute.id].memoised
        if memoised is not None:
            return unpack_encoded(attribute, memoised)
        encoded = self._of_now(attribute, now_s)
        if encoded is None:
            encoded = encode(attribute, None)
        if attribute.kind == "evolving":
            return encoded
        # Missing is pinned too: a later survey that read another value on this coordinate would merge
        # wrongly.
        pins.append((attribute.id, pack_encoded(encoded)))
        return encoded

    def _of_now(self, attribute: Attribute, now_s: float) -> EncodedValue:
        """Return the value that was set last, from memory or the ledger; None if there is none."""
        if attribute.id in self._unpinned:
            return self._unpinned[attribute.id]
        kept = self._state.kept.get(attribute.id)
        if kept is None or kept.value is None or not kept.since_s <= now_s < kept.until_s:
            return None
        return unpack_encoded(attribute, kept.value)

    def after(self, survey: Survey, number: int, now_s: float) -> list[StoredValue]:
        """Return what is kept of a survey's evolving values after its answer, where that changes.

        A value of now goes with the last open round that waits for it, one of an earlier round with its own.

        Args:
            survey: The survey.
            number: The round that is answered, still open.
            now_s: Clock time, epoch seconds.
        """
        found = []
        for attribute in survey.attributes:
            if (kept := self._state.kept.get(attribute.id)) is None:
                continue
            value = None if len(self._state.open_rounds(now_s, attribute.id)) == 1 else kept.value
            past = tuple(each for each in kept.past if each[:2] != (survey.digest, number))
            if (value, past) != (kept.value, kept.past):
                found.append(replace(kept, value=value, past=past))
        return found

    def answered(self, pins: Sequence[tuple[str, bytes]], kept: Sequence[StoredValue]) -> None:
        """Note that an answer is in the ledger: what it memoised, and what is kept after it."""
        if pins:
            self._state.refresh_attributes()
        for attribute_id, _ in pins:
            self._unpinned.pop(attribute_id, None)
        for each in kept:
            self._note(each)

    def forget(self) -> None:
        """Drop every value that is in memory alone."""
        self._unpinned.clear()
