"""The one row of the policy, with the defaults of a fresh installation."""

from django.db import migrations


def create_policy(apps, schema_editor):
    policies = apps.get_model("reservations", "Policy").objects
    policies.using(schema_editor.connection.alias).get_or_create(pk=1)


class Migration(migrations.Migration):
    dependencies = [("reservations", "0002_forbid_double_bookings")]

    operations = [migrations.RunPython(create_policy, migrations.RunPython.noop)]
