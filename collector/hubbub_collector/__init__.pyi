from hubbub_collector.boot_clock import boot_s as boot_s
from hubbub_collector.errors import (
    CollectorError as CollectorError,
    NotDurableError as NotDurableError,
    SettingsError as SettingsError,
)
from hubbub_collector.gateway import create_app as create_app
from hubbub_collector.permits import Issuer as Issuer, Permits as Permits
from hubbub_collector.server import (
    create_server as create_server,
    look_for_cycles_rarely as look_for_cycles_rarely,
)
from hubbub_collector.settings import GatewaySettings as GatewaySettings
from hubbub_collector.token_issuer import (
    Grants as Grants,
    IssuerSettings as IssuerSettings,
    create_issuer_app as create_issuer_app,
)
