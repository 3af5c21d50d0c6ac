"""The database itself refuses two standing reservations of one GPU at the same moment.

PostgreSQL has an exclusion constraint for that, SQLite gets triggers. On both, triggers keep the
copies of a reservation's span in its slots equal to the reservation, so that changing either row,
by whatever code or by hand, cannot get around it.

On SQLite a later migration that rebuilds one of the two tables drops its triggers: such a migration
runs SQLITE_BACK first and SQLITE last.
"""

from django.db import migrations

_DIGITS = "[0-9]"
_DATE = "-".join([_DIGITS * 4, _DIGITS * 2, _DIGITS * 2])
_TIME = ":".join([_DIGITS * 2] * 3)
# Moments are text there and compared as text, which is right only in Django's own form.
_IS_MOMENT = f"GLOB '{_DATE} {_TIME}*'"

SQLITE = [
    *(
        f"""
        CREATE TRIGGER slot_moments_{event} BEFORE {event} ON reservations_reservationgpu
        WHEN NOT (NEW.starts_at {_IS_MOMENT} AND NEW.ends_at {_IS_MOMENT})
        BEGIN SELECT RAISE(ABORT, 'slot_moments_are_utc_text'); END
        """
        for event in ("insert", "update")
    ),
    """
    CREATE TRIGGER slot_not_taken_insert BEFORE INSERT ON reservations_reservationgpu
    WHEN NEW.is_standing AND EXISTS (
        SELECT 1 FROM reservations_reservationgpu AS other
        WHERE other.gpu_id = NEW.gpu_id AND other.is_standing
          AND other.starts_at < NEW.ends_at AND other.ends_at > NEW.starts_at)
    BEGIN SELECT RAISE(ABORT, 'gpu_reserved_once'); END
    """,
    """
    CREATE TRIGGER slot_not_taken_update BEFORE UPDATE ON reservations_reservationgpu
    WHEN NEW.is_standing AND EXISTS (
        SELECT 1 FROM reservations_reservationgpu AS other
        WHERE other.gpu_id = NEW.gpu_id AND other.is_standing AND other.id <> NEW.id
          AND other.starts_at < NEW.ends_at AND other.ends_at > NEW.starts_at)
    BEGIN SELECT RAISE(ABORT, 'gpu_reserved_once'); END
    """,
    """
    CREATE TRIGGER slot_matches_insert BEFORE INSERT ON reservations_reservationgpu
    WHEN NOT EXISTS (
        SELECT 1 FROM reservations_reservation AS r
        WHERE r.id = NEW.reservation_id AND r.starts_at = NEW.starts_at
          AND r.ends_at = NEW.ends_at AND (r.cancelled_at IS NULL) = NEW.is_standing)
    BEGIN SELECT RAISE(ABORT, 'slot_matches_reservation'); END
    """,
    """
    CREATE TRIGGER slot_matches_update BEFORE UPDATE ON reservations_reservationgpu
    WHEN NOT EXISTS (
        SELECT 1 FROM reservations_reservation AS r
        WHERE r.id = NEW.reservation_id AND r.starts_at = NEW.starts_at
          AND r.ends_at = NEW.ends_at AND (r.cancelled_at IS NULL) = NEW.is_standing)
    BEGIN SELECT RAISE(ABORT, 'slot_matches_reservation'); END
    """,
    """
    CREATE TRIGGER slots_follow_reservation
    AFTER UPDATE OF starts_at, ends_at, cancelled_at ON reservations_reservation
    BEGIN
        UPDATE reservations_reservationgpu
        SET starts_at = NEW.starts_at, ends_at = NEW.ends_at,
            is_standing = (NEW.cancelled_at IS NULL)
        WHERE reservation_id = NEW.id;
    END
    """,
]
SQLITE_BACK = [
    "DROP TRIGGER slots_follow_reservation",
    "DROP TRIGGER slot_matches_update",
    "DROP TRIGGER slot_matches_insert",
    "DROP TRIGGER slot_not_taken_update",
    "DROP TRIGGER slot_not_taken_insert",
    "DROP TRIGGER slot_moments_update",
    "DROP TRIGGER slot_moments_insert",
]
POSTGRESQL = [
    "CREATE EXTENSION IF NOT EXISTS btree_gist",
    """
    ALTER TABLE reservations_reservationgpu ADD CONSTRAINT gpu_reserved_once
    EXCLUDE USING gist (gpu_id WITH =, tstzrange(starts_at, ends_at, '[)') WITH &&)
    WHERE (is_standing)
    """,
    """
    CREATE FUNCTION slot_matches_reservation() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        -- Locked, so that the reservation cannot move between this look and the commit.
        PERFORM 1 FROM reservations_reservation WHERE id = NEW.reservation_id FOR SHARE;
        IF NOT EXISTS (
            SELECT 1 FROM reservations_reservation AS r
            WHERE r.id = NEW.reservation_id AND r.starts_at = NEW.starts_at
              AND r.ends_at = NEW.ends_at AND (r.cancelled_at IS NULL) = NEW.is_standing)
        THEN RAISE EXCEPTION 'slot_matches_reservation' USING ERRCODE = 'check_violation';
        END IF;
        RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER slot_matches BEFORE INSERT OR UPDATE ON reservations_reservationgpu
    FOR EACH ROW EXECUTE FUNCTION slot_matches_reservation()
    """,
    """
    CREATE FUNCTION slots_follow_reservation() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE reservations_reservationgpu
        SET starts_at = NEW.starts_at, ends_at = NEW.ends_at,
            is_standing = (NEW.cancelled_at IS NULL)
        WHERE reservation_id = NEW.id;
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER slots_follow AFTER UPDATE OF starts_at, ends_at, cancelled_at
    ON reservations_reservation FOR EACH ROW EXECUTE FUNCTION slots_follow_reservation()
    """,
]
# The extension stays: another table may use it by now.
POSTGRESQL_BACK = [
    "DROP TRIGGER slots_follow ON reservations_reservation",
    "DROP FUNCTION slots_follow_reservation",
    "DROP TRIGGER slot_matches ON reservations_reservationgpu",
    "DROP FUNCTION slot_matches_reservation",
    "ALTER TABLE reservations_reservationgpu DROP CONSTRAINT gpu_reserved_once",
]


def run(statements):
    """One list of statements for each engine."""

    def apply(apps, schema_editor):
        for statement in statements[schema_editor.connection.vendor]:
            schema_editor.execute(statement)

    return apply


class Migration(migrations.Migration):
    dependencies = [("reservations", "0001_initial")]

    operations = [
        migrations.RunPython(
            run({"sqlite": SQLITE, "postgresql": POSTGRESQL}),
            run({"sqlite": SQLITE_BACK, "postgresql": POSTGRESQL_BACK}),
        )
    ]
