from django.apps import AppConfig


class MonitoringConfig(AppConfig):
    name = "monitoring"
    verbose_name = "Hosts and GPUs"

    def ready(self) -> None:
        from django_q.signals import post_execute

        from monitoring.services import heartbeats

        post_execute.connect(heartbeats.task_ended, dispatch_uid="heartbeat")
