"""What libraries put into the console and must not stay there.

Whoever may add a schedule can have the workers, which hold the keys, call any function; queued and
finished tasks are pickles; outstanding tokens are shown whole.
"""

from django.contrib import admin
from django_q.models import Failure, OrmQ, Schedule, Success
from rest_framework_simplejwt.token_blacklist.models import BlacklistedToken, OutstandingToken

for model in (Schedule, OrmQ, Success, Failure, OutstandingToken, BlacklistedToken):
    if admin.site.is_registered(model):
        admin.site.unregister(model)
