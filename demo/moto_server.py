"""moto's S3 server with atomic conditional writes: moto alone checks the key and then writes it, so that two writers can win.

``python demo/moto_server.py PORT`` serves on 127.0.0.1 until it is killed. Tests run it, too (``tests/support/s3.py``).
"""

import io
import sys
import threading
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

_READS = ("GET", "HEAD")


class OneWriterAtATime:
    """A WSGI application around another one; reads go on beside a write."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application
        self._writing = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] in _READS:
            answer: Iterable[bytes] = self._application(environ, start_response)
            return answer
        chunked = environ.get("wsgi.input_terminated", False)
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(-1 if chunked else length)  # outside of the lock: the client may be slow, or gone
        if len(body) < length:
            start_response("400 Bad Request", [])
            return []
        environ["wsgi.input"] = io.BytesIO(body)
        with self._writing:
            return list(self._application(environ, start_response))


if __name__ == "__main__":
    application = OneWriterAtATime(DomainDispatcherApplication(create_backend_app))
    run_simple("127.0.0.1", int(sys.argv[1]), application, threaded=True, request_handler=MotoRequestHandler)
