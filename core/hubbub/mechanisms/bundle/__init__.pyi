from hubbub.mechanisms.bundle.channel import (
    MAX_BUNDLED as MAX_BUNDLED,
    MAX_COMBINATIONS as MAX_COMBINATIONS,
    MAX_ORDER as MAX_ORDER,
    MAX_PARTS as MAX_PARTS,
    SampledPart as SampledPart,
    PartBound as PartBound,
    SampledParts as SampledParts,
    components_of as components_of,
)
from hubbub.mechanisms.bundle.estimator import (
    BundleEstimate as BundleEstimate,
    BundleEstimator as BundleEstimator,
)
from hubbub.mechanisms.bundle.latin import LatinSelection as LatinSelection
from hubbub.mechanisms.bundle.noise import PairedTables as PairedTables, PooledNoise as PooledNoise
from hubbub.mechanisms.bundle.pooling import Pooling as Pooling, told_by as told_by
from hubbub.mechanisms.bundle.toss import PART_ALARM as PART_ALARM, part_chances as part_chances
