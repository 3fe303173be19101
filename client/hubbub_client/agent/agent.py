"""The device agent: what a host app embeds to answer surveys without ever sending a value.

    with Agent("ledger.db", "https://collect.example.org", budget=4.0) as agent:
        agent.register(Attribute.integer("visits", 0, 77, kind="static"))
        agent.set("visits", 3)
        agent.opt_in(survey)
        agent.enrol(survey)
        agent.answer()
        agent.upload()

The unit of privacy is the whole record of the installation's owner, all attributes over all rounds: for any
two records, the probability of everything that this agent ever sends differs by a factor of at most e^budget.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from random import SystemRandom
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from hubbub.survey import Attribute, Survey
from hubbub_client import owner_page
from hubbub_client.agent.answerer import Answerer, random_id
from hubbub_client.agent.background import Background
from hubbub_client.agent.device_state import DeviceState, decode_attribute
from hubbub_client.agent.enrolments import Enrolments
from hubbub_client.agent.policy import Policy
from hubbub_client.agent.sender import OutboxUploader
from hubbub_client.agent.signed_lists import LOGGED_PATH, SignedLists, out_of_log
from hubbub_client.agent.strict import check_opt_in, check_value, strict_mode
from hubbub_client.agent.values import Values
from hubbub_client.errors import ClientError, TransportError
from hubbub_client.ledger.file import Counter
from hubbub_client.ledger.ledger import Ledger
from hubbub_client.ledger.process_lock import ProcessLock
from hubbub_client.surveys.schedule import Enrolment, decode_listed_surveys, trusted
from hubbub_client.surveys.survey_lists import pinned, unverified
from hubbub_client.upload.outcomes import Answer, AnswerCheck, Correction, SentReport, Status, UploadOutcome
from hubbub_client.upload.transport import HttpTransport, PlainHttp, Transport, checked_url
from hubbub_client.upload.uploader import Limits

if TYPE_CHECKING:
    from hubbub.transparency import LogPolicy
    from hubbub_client.owner_page.account import Account
    from hubbub_client.owner_page.page import OwnerPage
    from hubbub_client.tokens.fetcher import Tokens

SURVEYS_PATH: Final = "/v1/surveys"

_WHOLE_OUTBOX: Final = 2**31
"""More reports than any device has."""

JITTER: Final = SystemRandom().random


class Agent:
    """One device: attributes of its owner, a ledger, an outbox and a way to one collector.

    Answers draw from the operating system's generator; there is no way to hand in another. Errors never carry
    a value, and nothing is logged. Calls are safe from several threads.

    Args:
        path: The ledger file, kept out of backups: a restored copy would spend the same budget twice.
        collector_url: Where reports go.
        budget: Lifetime epsilon of the owner's whole record, fixed by the first open of the ledger; None to
            open one that exists as it was fixed.
        policy: What surveys may ask; by default whatever the owner has said yes to.
        device_key: A secret of this device, at least 16 bytes, that no backup carries, where the host has
            one: then a ledger copied to another device is refused.
        counter: A number of this device that only grows, where the host has one: then a ledger that was set
            back to an earlier state, or made anew, is refused.
        limits: The uploader's caps.
        clock: Epoch seconds, or None while the device does not trust its clock: then nothing is answered or
            sent, and what waits stays.
        jitter: Uniform draws in [0, 1) for the back-off; never used for an answer.
        http: Another transport, for hosts with an HTTP stack of their own.
        survey_key: Public key of those who may ask, as `hubbub survey keygen` prints it, or several while one
            key replaces another. Then lists of surveys must be signed by one of them, and may cancel surveys.
            None: the collector is trusted to choose surveys, within budget and policy.
        log: The log in which lists must be, and the witnesses that must have seen it; None for none. It
            needs `survey_key`.
        check_share: The share of answers for which the agent checks, once, whether they were counted; see
            `check`. It needs `log`.
        log_url: Where that log is served, as by a cluster's dashboard; None for `collector_url`.
        strict: For development: raise for a value outside its domain and for an opt-in that lets no survey
            in; otherwise both pass in silence. None: the environment variable HUBBUB_STRICT decides, and
            without it the agent is not strict.
        upload_password: What the collector asks of every upload, if it asks for one; not used with `http`.
        tokens: One-time tokens that go with reports, where the collector asks for them; the agent closes
            them. A report leaves only with its token.
        plain_http: Where `collector_url` may be http: "local", to this machine alone, or "anywhere", such as
            in a network of one's own. Everybody on the way reads it, the upload password too.

    Raises:
        ClientError: A survey key is not one, a log is pinned without any, `check_share` is no share or comes
            without a log, or HUBBUB_STRICT is neither 0 nor 1.
        LedgerError: The ledger cannot be used; its subclasses say why.
        TransportError: The URL is not http or https, or http to another machine.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        collector_url: str,
        *,
        budget: float | None,
        policy: Policy | None = None,
        device_key: bytes | None = None,
        counter: Counter | None = None,
        limits: Limits | None = None,
        clock: Callable[[], float | None] = time.time,
        jitter: Callable[[], float] = JITTER,
        http: Transport | None = None,
        survey_key: str | Iterable[str] | None = None,
        log: LogPolicy | None = None,
        check_share: float = 0.0,
        log_url: str | None = None,
        strict: bool | None = None,
        upload_password: str | None = None,
        tokens: Tokens | None = None,
        plain_http: PlainHttp = "local",
    ) -> None:
        self._survey_keys, self._policy = pinned(survey_key), policy or Policy()
        if log is not None and not self._survey_keys:
            raise ClientError(
                "log must come with survey_key, got none: a log says who published, not who may ask"
            )
        if not 0 <= check_share <= 1 or (check_share and log is None):
            raise ClientError(
                f"check_share must be within 0 and 1, and above 0 come with log, got {check_share!r:.40}"
            )
        self._log = log
        self._strict = strict_mode(strict)
        self._tokens = tokens
        self._http: Transport = (
            HttpTransport(collector_url, bearer=upload_password, plain_http=plain_http)
            if http is None
            else http
        )
        ledger = Ledger(
            path, budget=None if budget is None else float(budget), device_key=device_key, counter=counter
        )
        self._ledger, self._clock, self._lock = ledger, clock, ProcessLock()
        try:
            self._state = DeviceState(ledger)
            self._values = Values(self._state)
            self._enrolments = Enrolments(self._state, self._policy)
            self._checker = None
            if log is not None and check_share:
                from hubbub_client.agent.checks import AnswerChecker  # noqa: PLC0415 - of few hosts

                checked_url(log_url or collector_url, "log", plain_http=plain_http)
                own = partial(HttpTransport, log_url or collector_url, plain_http=plain_http)
                self._checker = AnswerChecker(self._state, self._lock, log, check_share, own)
            self._answerer = Answerer(
                self._state,
                self._values,
                random_id if tokens is None else tokens.wallet.report_id,
                None if self._checker is None else self._checker.planned,
            )
            self._lists = SignedLists(self._state, self._values, self._survey_keys)
        except BaseException:
            ledger.close()
            raise
        self._sender = OutboxUploader(
            ledger,
            self._lock,
            self._http,
            limits=limits or Limits(),
            clock=clock,
            jitter=jitter,
            wallet=None if tokens is None else tokens.wallet,
        )
        self._background = Background(self._step)
        self._page: OwnerPage | None = None

    def _now_s(self) -> float | None:
        return trusted(self._clock())

    def register(self, attribute: Attribute) -> None:
        """Declare an attribute that this device may be asked about; to declare it again changes nothing.

        Surveys never declare attributes: what is known about its owner is the host's to say.

        Raises:
            AttributeRefusedError: It was registered before with another kind or domain. Budget was reserved
                for that domain, so it cannot change; give the changed attribute another id.
        """
        with self._lock:
            self._values.register(attribute)

    def set(self, attribute_id: str, value: object) -> None:
        """Tell the agent the attribute's value from now on.

        None, or anything outside the domain, is "missing". An evolving value stands until it is replaced, in
        memory; while a round that asks for it is open and not answered, it is kept in the ledger too, so that
        a restart does not turn it into "missing". A static value is pinned by the first answer that reads it,
        missing included, and stays until it is corrected.

        Raises:
            AttributeRefusedError: No such attribute is registered, or its value is pinned; in strict mode
                also, the value is outside the domain.
            LedgerError: The ledger is closed, or failed.
        """
        with self._lock:
            self._ledger.paused()  # raises where the ledger is closed
            self._check_value(attribute_id, value)
            self._values.set(attribute_id, value, now_s=self._now_s())

    def correct(self, attribute_id: str, value: object) -> Correction:
        """Replace a pinned static value by a new one, because it was a mistake or has changed after all.

        The new value is a coordinate of its own: what the earlier one cost stays spent, what was reserved
        for it and not answered is forfeited, and one new answer is reserved for every survey that is still
        running. If that does not fit, nothing changes: the earlier value stands.

        Raises:
            AttributeRefusedError: No such attribute is registered, or it is evolving; in strict mode also,
                the value is outside the domain.
        """
        with self._lock:
            self._check_value(attribute_id, value)
            return self._values.correct(attribute_id, value, now_s=self._now_s())

    def _check_value(self, attribute_id: str, value: object) -> None:
        if self._strict:
            check_value(self._values.attribute(attribute_id), value)

    def fetch_surveys(self) -> tuple[Survey, ...]:
        """Return the surveys that the collector serves; taking part in one is a separate step.

        A survey that this version cannot read is left out: it is the collector's business, and no reason to
        lose the others. So is what lies beyond `schedule.MAX_LISTED` inputs.

        Raises:
            TransportError: The collector cannot be reached, or its answer is not a list of surveys.
            ListRefusedError: See `read_surveys`.
            LedgerError: The ledger failed.
        """
        self._lock.check()  # a fork would write into the connections of the process that it came from
        path = SURVEYS_PATH if self._log is None else LOGGED_PATH
        response = self._http.get(path)
        if response.status != 200:
            raise TransportError(f"collector must answer {path} with 200, got {response.status}")
        return self.read_surveys(response.body)

    def read_surveys(self, data: bytes) -> tuple[Survey, ...]:
        """Return the surveys of a list, wherever it came from; those that were ever cancelled are left out.

        With a pinned key, what the list cancels is cancelled first, for good: nothing of it is answered or
        sent any more, and what was reserved for answers that were not drawn is free again.

        Raises:
            ListRefusedError: It is no list; or, with a pinned key, it is unsigned, signed by another,
                expired, or older than one that was seen; or, with a pinned log, it came without a proof
                that witnesses saw it there this month, or out of a log that was longer before. Its `reason`
                says which.
            LedgerError: The ledger failed.
        """
        with self._lock:
            if self._log is not None:
                key = self._log.log.public
                known = self._ledger.log_size(key)
                data, size = out_of_log(data, self._log, now_s=self._now_s(), size=known)
                if size > known:
                    self._ledger.see_log(key, size)
            signed = bool(self._survey_keys)
            listed = self._lists.take(data, now_s=self._now_s()) if signed else unverified(data)
            cancelled = self._state.cancelled
        return tuple(survey for survey in decode_listed_surveys(listed) if survey.digest not in cancelled)

    def opt_in(self, asked: Survey | str) -> None:
        """Store the owner's yes to one survey, or to all that ask for one attribute (given by its id).

        Raises:
            AttributeRefusedError: In strict mode, the yes would let no survey in: an attribute is not
                registered, or was registered with another kind or domain, or the policy leaves it out.
        """
        with self._lock:
            if self._strict:
                stored = self._state.attributes.items()
                registered = {attribute_id: decode_attribute(each) for attribute_id, each in stored}
                check_opt_in(asked, registered, self._policy)
            self._enrolments.opt_in(asked)

    def opt_out(self, asked: Survey | str) -> None:
        """Store the owner's no, and leave the survey, or all that ask for the attribute.

        What waits to be sent for them is withdrawn. What was answered stays spent and what was reserved stays
        reserved: a refund could be spent twice.
        """
        with self._lock:
            self._enrolments.opt_out(asked)
            if (now_s := self._now_s()) is not None:
                self._values.drop_unwaited(now_s, "past")

    def enrol(self, survey: Survey) -> Enrolment:
        """Take part in a survey, or say why not; its whole schedule is reserved now, or nothing is.

        The decision reads public facts, the owner's words and past outputs, never a value. A survey that was
        left can be joined again: its remaining reservations are used, and no round is answered twice.

        Raises:
            LedgerError: The ledger failed.
        """
        with self._lock:
            return self._enrolments.enrol(survey, now_s=self._now_s())

    def answer(self) -> tuple[Answer, ...]:
        """Answer every survey whose round is open now and not answered yet, each in one transaction on disk.

        A value that is not set is answered as missing, because silence would reveal that. Nothing is sent
        here.

        Raises:
            LedgerError: The ledger failed. What was being answered is wholly in it or not at all.
        """
        with self._lock:
            return self._answerer.answer(now_s=self._now_s())

    def pause(self) -> None:
        """Answer and send nothing until `resume`; rounds that go by are not answered later."""
        with self._lock:
            self._ledger.set_paused("paused")

    def resume(self) -> None:
        """End a pause."""
        with self._lock:
            self._ledger.set_paused("running")

    def forget(self) -> None:
        """Erase every value, every answer and all that waits to be sent; the budget is not renewed.

        All surveys end and every yes is taken back (a no stays). What was answered stays spent; what was
        reserved is spent at its worst. Attributes stay registered; a value set from now on counts as a new
        one.
        """
        with self._lock:
            self._ledger.forget(self._state.filter_state.total())
            self._values.forget()
            if self._tokens is not None:
                self._tokens.wallet.forget()
            self._state.load()

    def fetch_tokens(self) -> bool:
        """Ask for this period's one-time tokens, and return whether they came; False where nothing was asked.

        As many are asked for as always, whatever the device has to send (`hubbub_client.tokens`): for the
        reports that wait, then for the rounds that begin within a period.

        Raises:
            TransportError: The issuer cannot be reached, or its answer is refused.
            LedgerError: The ledger failed.
        """
        tokens, now_s = self._tokens, self._now_s()
        if tokens is None or now_s is None:
            return False
        with self._lock:
            if self._ledger.paused():
                return False
            coming = self._state.coming_rounds(now_s, tokens.period_s)
            tokens.wallet.keep(coming, [report.id for report in self._ledger.outbox(_WHOLE_OUTBOX)])
        return tokens.fetch(coming, now_s=now_s)

    def upload(self) -> UploadOutcome:
        """Send what waits, oldest first, until the outbox is empty or the collector must be left alone.

        A report leaves the outbox only for a typed outcome; whatever else happens, the same bytes are sent
        again later. A collector that cannot be reached is an outcome, not an error. The call ends within
        `Limits.upload_s` and the bound of one request, 30 seconds in all by default, however the collector
        draws out its answers; while another thread uploads, it ends at once.

        Raises:
            LedgerError: The ledger failed.
        """
        return self._sender.upload()

    def check(self) -> AnswerCheck | None:
        """Check whether one answer was counted, if a check is due, and return what came of it.

        Few answers are checked, by `check_share`; of a static survey one in its life. A check is made
        once, hours after the round's end, on a connection of its own: it asks for a part of the round's list
        that hundreds of reports share. What cannot be learned now is asked for again, for two weeks.

        Raises:
            LedgerError: The ledger failed.
        """
        now_s = self._now_s()
        return None if self._checker is None or now_s is None else self._checker.check(now_s)

    def checks(self) -> tuple[AnswerCheck, ...]:
        """Return every check that was taken since the last `forget`."""
        with self._lock:
            surveys = self._state.surveys
            return tuple(AnswerCheck(surveys[found[0]].id, *found) for found in self._ledger.found())

    def status(self) -> Status:
        """Return what was spent, what is reserved and what waits."""
        with self._lock:
            state = self._state
            return Status(
                self._ledger.budget,
                state.filter_state.loss,
                state.filter_state.committed,
                state.enrolment_statuses(),
                sum(map(len, state.answered.values())),
                self._ledger.waiting(),
                self._background.errors,
                self._background.last_error,
                self._ledger.paused(),
                "signed" if self._survey_keys else "unverified",
            )

    def surveys(self) -> tuple[Survey, ...]:
        """Return every survey that the device takes or took part in, in the order of enrolment."""
        with self._lock:
            return tuple(self._state.surveys.values())

    def sent(self) -> tuple[SentReport, ...]:
        """Return all that the collector has, byte for byte, since the last `forget`.

        A report appears when the collector has answered for it, not before: an owner who saw an answer in
        the outbox could keep it back, and those who did would bias the survey.
        """
        with self._lock:
            return owner_page.sent_reports(
                self._ledger.answers(), self._ledger.transcript(), self._state.surveys
            )

    def account(self) -> Account:
        """Return the owner's account: what was asked and sent, what it can reveal, and what is left.

        Unlike `status`, it says nothing of an answer that waits, and counts it at its worst.
        """
        with self._lock:
            account = partial(
                owner_page.account_of,
                closed=self._ledger.closed(),
                rows=self._ledger.transcript(),
                surveys=dict(self._state.surveys),
                states={digest: stored.state for digest, stored in self._state.enrolments.items()},
                answers=self._ledger.answers(),
                refusals=self._ledger.refusals(),
                budget=self._ledger.budget,
                waiting=self._ledger.waiting(),
                paused=self._ledger.paused(),
            )
        return account()  # it takes a while on an old ledger, and needs it no more

    def serve_page(self, *, port: int = 0) -> OwnerPage:
        """Serve the owner's page on this machine until `close`, and say where; see `page`.

        Args:
            port: Where to listen on 127.0.0.1; 0 for any free port.

        Raises:
            OSError: The port is taken.
            LedgerError: The ledger is closed, or failed.
        """
        with self._lock:
            self._ledger.paused()  # raises where the ledger is closed
            if self._page is None:
                self._page = owner_page.OwnerPage(lambda: nullcontext(self), port=port)
            return self._page

    def run_background(self, *, poll_s: float = 60.0) -> None:
        """Answer and upload in a daemon thread until `close`; it never raises into the host.

        Args:
            poll_s: Seconds between two looks at clock and outbox; rounds shorter than this may be missed.

        Raises:
            ClientError: `poll_s` is no time to wait.
            LedgerError: The ledger is closed, or failed.
        """
        with self._lock:
            self._ledger.paused()  # raises where the ledger is closed
            self._background.start(poll_s)

    def _step(self) -> float | None:
        self.answer()
        try:
            self.fetch_tokens()
        finally:
            wait_s = self.upload().wait_s
        self.check()
        return wait_s

    def close(self) -> None:
        """Stop the background thread, close connections and give up the ledger.

        What the background thread is at is waited for, at most two seconds; an upload that takes longer is
        cut off. Its reports stay in the outbox and are sent again as they are; an `upload` of another thread
        ends in a LedgerError. In a forked child it does nothing: the agent is its parent's.
        """
        if self._lock.inherited:
            return
        self._background.stop()
        if self._page is not None:
            self._page.close()
        with self._lock:
            self._http.close()
            if self._tokens is not None:
                self._tokens.close()
            self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Agent of {len(self._state.surveys)} surveys>"
