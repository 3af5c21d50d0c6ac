"""What nvidia-smi prints, as plain values. Read by name, never by position; nothing raises.

Sources: `nvidia-smi --help-query-gpu`, `--help-query-compute-apps`, and recorded output of drivers
325 to 610 (tests/data/corpus).
"""

from monitoring.nvidia_smi.faults import Fault, classify
from monitoring.nvidia_smi.listing import Listing, MigDevice, parse_list
from monitoring.nvidia_smi.processes import ProcessAnswer, parse_compute_apps, parse_pmon
from monitoring.nvidia_smi.query import QUERY_FIELDS, GpuAnswer, parse_gpu_query, section_of
from monitoring.nvidia_smi.xml import parse_xml

__all__ = [
    "QUERY_FIELDS",
    "Fault",
    "GpuAnswer",
    "Listing",
    "MigDevice",
    "ProcessAnswer",
    "classify",
    "parse_compute_apps",
    "parse_gpu_query",
    "parse_list",
    "parse_pmon",
    "parse_xml",
    "section_of",
]
