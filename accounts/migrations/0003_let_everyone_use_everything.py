"""A fresh installation lets people book at once, by a grant that administrators can see."""

from django.db import migrations
from django.utils import timezone

NAME = "Everyone, everything"


def create_grant(apps, schema_editor):
    grants = apps.get_model("accounts", "Grant").objects.using(schema_editor.connection.alias)
    if not grants.exists():
        grants.create(name=NAME, everyone=True, everything=True, starts_at=timezone.now())


def delete_grant(apps, schema_editor):
    grants = apps.get_model("accounts", "Grant").objects.using(schema_editor.connection.alias)
    grants.filter(name=NAME).delete()


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_add_grants")]

    operations = [migrations.RunPython(create_grant, delete_grant)]
