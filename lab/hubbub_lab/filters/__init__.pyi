from hubbub_lab.filters.odometer import Odometer as Odometer
from hubbub_lab.filters.simplified import SimplifiedFilter as SimplifiedFilter
