"""Receives webhooks, and writes a line for each event whose signature fits: stream, sequence, id, subject.

The arguments are a port, the secret, and the file.
"""
import base64, hashlib, hmac, json, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

port, secret, path = int(sys.argv[1]), base64.b64decode(sys.argv[2].removeprefix("whsec_")), sys.argv[3]
seen, lock = open(path, "a", buffering=1), Lock()


def verified(headers, body):
    stamp = headers["webhook-timestamp"]
    signed = f'{headers["webhook-id"]}.{stamp}.'.encode() + body
    want = "v1," + base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
    return abs(time.time() - int(stamp)) < 300 and any(hmac.compare_digest(s, want) for s in headers["webhook-signature"].split())


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        good = verified(self.headers, body)
        if good:
            event = json.loads(body)
            good = event["id"] == self.headers["webhook-id"]
            line = f'{event["source"].rpartition("/")[2]} {int(event["sequence"])} {event["id"]} {event["subject"]}\n'
        else:
            line = "forged 0 - -\n"
        with lock:
            seen.write(line)
        self.send_response(204 if good else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


Server(("127.0.0.1", port), Receiver).serve_forever()
