"""People, groups and grants over HTTP."""

from __future__ import annotations

from django.contrib.auth.models import Group
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.permissions import IsAdminUser, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import BaseRouter
from rest_framework.serializers import BaseSerializer

from accounts.models import Grant, User
from accounts.people import signed_in
from accounts.permissions import AdministratorsChange
from accounts.serializers import GrantSerializer, GroupSerializer, UserSerializer
from accounts.services import grants


class UserViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[User]):
    """The people, for administrators; everybody reads themselves at `users/me/`."""

    queryset = User.objects.prefetch_related("groups").order_by("username")
    serializer_class = UserSerializer
    permission_classes = [IsAdminUser]
    filterset_fields = ["username", "is_active", "is_staff"]
    lookup_value_regex = r"\d+"

    @extend_schema(filters=False)
    @action(detail=False, permission_classes=[IsAuthenticated])
    def me(self, request: Request) -> Response:
        return Response(self.get_serializer(request.user).data)


class GroupViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Group]
):
    """All groups for administrators; for the others those they are in."""

    queryset = Group.objects.none()
    serializer_class = GroupSerializer
    filterset_fields = ["name"]
    lookup_value_regex = r"\d+"

    def get_queryset(self) -> QuerySet[Group]:
        user = signed_in(self.request)
        rows = Group.objects.all() if user.is_staff else user.groups.all()
        return rows.order_by("name")


class GrantViewSet(viewsets.ModelViewSet[Grant]):
    """Who may use what when. Administrators change grants; people read those about them."""

    queryset = Grant.objects.none()
    serializer_class = GrantSerializer
    permission_classes = [AdministratorsChange]
    filterset_fields = ["name"]
    lookup_value_regex = r"\d+"
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]

    def get_queryset(self) -> QuerySet[Grant]:
        user = signed_in(self.request)
        rows = Grant.objects.all() if user.is_staff else Grant.objects.for_person(user)
        return rows.prefetch_related("users", "groups", "gpus", "hosts", "windows").order_by("name")

    def perform_create(self, serializer: BaseSerializer[Grant]) -> None:
        made = grants.create(actor=signed_in(self.request), **serializer.validated_data)
        serializer.instance = self.get_queryset().get(pk=made.pk)

    def perform_update(self, serializer: BaseSerializer[Grant]) -> None:
        changed = grants.change(
            self.get_object(), actor=signed_in(self.request), **serializer.validated_data
        )
        serializer.instance = self.get_queryset().get(pk=changed.pk)

    def perform_destroy(self, instance: Grant) -> None:
        grants.delete(instance, actor=signed_in(self.request))


def register(router: BaseRouter) -> None:
    router.register("users", UserViewSet, basename="user")
    router.register("groups", GroupViewSet, basename="group")
    router.register("grants", GrantViewSet, basename="grant")
