from hubbub_client.tokens.fetcher import (
    REQUEST_PATH as REQUEST_PATH,
    REQUEST_TYPE as REQUEST_TYPE,
    Tokens as Tokens,
)
from hubbub_client.tokens.issuer import TokenIssuer as TokenIssuer
from hubbub_client.tokens.wallet import Wallet as Wallet
