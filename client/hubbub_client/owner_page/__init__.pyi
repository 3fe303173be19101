from hubbub_client.owner_page.account import account_of as account_of
from hubbub_client.owner_page.descriptions import (
    asked as asked,
    factor as factor,
    fate as fate,
    learned as learned,
    mechanism as mechanism,
    moment as moment,
    progress as progress,
    refused as refused,
    schedule as schedule,
    symbol as symbol,
)
from hubbub_client.owner_page.account import sent_reports as sent_reports
from hubbub_client.owner_page.page import OwnerPage as OwnerPage
