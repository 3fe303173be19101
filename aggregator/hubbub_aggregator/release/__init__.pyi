from hubbub_aggregator.release.comparison import (
    IncomparableError as IncomparableError,
    change as change,
    history as history,
)
from hubbub_aggregator.release.disclosure import (
    AcceptedSizes as AcceptedSizes,
    Recount as Recount,
    Shown as Shown,
    UNKNOWN as UNKNOWN,
    cohort_of as cohort_of,
    why_no_recount as why_no_recount,
)
from hubbub_aggregator.release.enrolment import FleetStatement as FleetStatement
from hubbub_aggregator.release.estimates import (
    METHOD as METHOD,
    no_estimates as no_estimates,
)
from hubbub_aggregator.release.judgement import (
    KEPT_ROUNDS as KEPT_ROUNDS,
    MOST_ALERTS as MOST_ALERTS,
    ReleaseJudge as ReleaseJudge,
    SurveyAlerts as SurveyAlerts,
)
from hubbub_aggregator.release.provisional import (
    AcceptedCounts as AcceptedCounts,
    PublicationGate as PublicationGate,
    advance as advance,
)
from hubbub_aggregator.release.round_release import (
    Document as Document,
    Release as Release,
    archived_release as archived_release,
    canonical_bytes as canonical_bytes,
    release as release,
    require_method as require_method,
    same_facts as same_facts,
    sealed_bytes as sealed_bytes,
    sealed_hash as sealed_hash,
    sum_counts as sum_counts,
    timestamp as timestamp,
)
from hubbub_aggregator.release.seal_clock import AgreedClock as AgreedClock, SteadyClock as SteadyClock
from hubbub_aggregator.release.sealing import DEFAULT_GRACE_S as DEFAULT_GRACE_S, Sealer as Sealer, due as due
from hubbub_aggregator.release.verification import verify as verify
from hubbub_aggregator.release.views import (
    empirical_bayes_values as empirical_bayes_values,
    round_ranks as round_ranks,
    round_views as round_views,
)
from hubbub_aggregator.release.watched import (
    NOTHING_SO_FAR as NOTHING_SO_FAR,
    SoFar as SoFar,
    with_bands as with_bands,
)
