"""Reads events with the CloudEvents library of Python: read.py FILE KEY TEXT.

It prints a line of JSON for each: its attributes, its data, the parts of its subject, and
the hash of TEXT. The last two come from documented.py, which the test makes of docs/events.md.
"""

import json
import sys

from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

import documented


def attributes(event):
    """Returns what the getters say, times in the form that the file has."""
    known = {
        "specversion": event.get_specversion(),
        "id": event.get_id(),
        "source": event.get_source(),
        "type": event.get_type(),
        "subject": event.get_subject(),
        "time": event.get_time().isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "datacontenttype": event.get_datacontenttype(),
    }
    others = event.get_attributes().keys() - known.keys()
    return known | {name: event.get_extension(name) for name in others}


def main(file, key, text):
    with open(file, "rb") as lines:
        for line in lines:
            event = JSONFormat().read(CloudEvent, line)
            print(json.dumps({
                "attributes": attributes(event),
                "data": event.get_data(),
                "parts": documented.parts(event.get_subject()),
                "hash": documented.hashed(key.encode(), text),
            }))


main(*sys.argv[1:])
