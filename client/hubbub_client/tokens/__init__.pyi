from hubbub_client.tokens.fetcher import REQUEST_PATH as REQUEST_PATH, REQUEST_TYPE as REQUEST_TYPE
