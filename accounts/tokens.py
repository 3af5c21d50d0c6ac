"""API tokens: a short access token, and a refresh token that works exactly once."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import AnonRateThrottle
from rest_framework.views import APIView
from rest_framework_simplejwt.exceptions import InvalidToken, TokenError
from rest_framework_simplejwt.settings import api_settings
from rest_framework_simplejwt.token_blacklist.models import BlacklistedToken, OutstandingToken
from rest_framework_simplejwt.tokens import RefreshToken
from rest_framework_simplejwt.utils import get_md5_hash_password
from rest_framework_simplejwt.views import TokenObtainPairView

from accounts.models import User

USED_TWICE = (
    "This refresh token was used before, so all tokens of this account were ended. Log in again."
)
NOT_VALID = "This refresh token is not valid any more. Log in again."


class _SignedRefresh(RefreshToken):
    """Signature, kind and expiry are verified; whether it was used is decided under a lock."""

    def check_blacklist(self) -> None:
        return


class LoginThrottle(AnonRateThrottle):
    """Counts by address, whoever asks: who is signed in guesses no faster."""

    scope = "login"

    def get_cache_key(self, request: Any, view: Any) -> str:
        return self.cache_format % {"scope": self.scope, "ident": self.get_ident(request)}


class TokenPair(serializers.Serializer[dict[str, str]]):
    access = serializers.CharField(read_only=True)
    refresh = serializers.CharField()


class RefreshBody(serializers.Serializer[dict[str, str]]):
    refresh = serializers.CharField(max_length=2000)


class LoginView(TokenObtainPairView):
    """`{username, password}` → `{access, refresh}`."""

    throttle_classes = [LoginThrottle]


class _TokenView(APIView):
    """Open to everybody: the refresh token in the body is the proof."""

    authentication_classes: list[Any] = []
    permission_classes: list[Any] = []
    throttle_classes = [LoginThrottle]

    def get_authenticate_header(self, request: Request) -> str:
        """Makes DRF answer 401, not 403, when the proof is no good."""
        return 'Bearer realm="api"'


class RefreshView(_TokenView):
    """`{refresh}` → `{access, refresh}`; the given token is used up."""

    @extend_schema(request=RefreshBody, responses=TokenPair)
    def post(self, request: Request) -> Response:
        token = renew(_refresh_of(request))
        return Response({"access": str(token.access_token), "refresh": str(token)})


class RevokeView(_TokenView):
    """`{refresh}` → 204; the token cannot be refreshed any more."""

    @extend_schema(request=RefreshBody, responses={204: None})
    def post(self, request: Request) -> Response:
        try:
            RefreshToken(_refresh_of(request)).blacklist()  # type: ignore[arg-type]
        except TokenError:
            raise InvalidToken(NOT_VALID) from None
        return Response(status=status.HTTP_204_NO_CONTENT)


def renew(text: str) -> RefreshToken:
    """Use a refresh token up and return its successor. Raises InvalidToken (401).

    Exactly one of several simultaneous uses wins; every later use is taken for theft and ends all
    tokens of the person.
    """
    try:
        token = _SignedRefresh(text)  # type: ignore[arg-type]
    except TokenError:
        raise InvalidToken(NOT_VALID) from None
    with transaction.atomic():
        successor, problem = _consume(token)
    if successor is None:
        # Raised outside the transaction, so that ending a family is not rolled back with it.
        raise InvalidToken(problem)
    return successor


def end_all_tokens(user: User) -> None:
    """End every refresh token of the person; access tokens run out within minutes."""
    BlacklistedToken.objects.bulk_create(
        [
            BlacklistedToken(token=token)
            for token in OutstandingToken.objects.filter(user=user, blacklistedtoken=None)
        ],
        ignore_conflicts=True,
    )


def _consume(token: RefreshToken) -> tuple[RefreshToken | None, str]:
    # Whoever waits here for the row sees the winner's blacklist entry below.
    outstanding = (
        OutstandingToken.objects.select_for_update().filter(jti=token[api_settings.JTI_CLAIM])
    ).first()
    if outstanding is None or outstanding.user_id is None:
        return None, NOT_VALID
    user = User.objects.filter(pk=outstanding.user_id, is_active=True).first()
    if user is None:
        return None, NOT_VALID
    if BlacklistedToken.objects.filter(token=outstanding).exists():
        end_all_tokens(user)
        return None, USED_TWICE
    if token.get(api_settings.REVOKE_TOKEN_CLAIM) != get_md5_hash_password(user.password):
        return None, NOT_VALID
    BlacklistedToken.objects.create(token=outstanding)
    return RefreshToken.for_user(user), ""


def _refresh_of(request: Request) -> str:
    body = RefreshBody(data=request.data)
    body.is_valid(raise_exception=True)
    return body.validated_data["refresh"]
