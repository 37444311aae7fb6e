"""A server of Google Cloud Storage's XML API: moto's S3 server, which speaks the same language but for the condition of a create.

``python -m support.gcs_server PORT`` serves on 127.0.0.1 until it is killed. No registry has a server that takes this API's
creates: fake-gcs-server 1.56.1 answers them with 400 (invalid uploadType), gcp-storage-emulator 2026.7.19 has only the JSON API.
"""

import sys
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

from demo.moto_server import OneWriterAtATime

_SIGNED = "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=any"
"""Which moto does not verify."""


class GoogleConditions:
    """A WSGI application around an S3 server: only ``x-goog-if-generation-match: 0`` makes a PUT create-only.

    Google ignores If-None-Match on a PUT; here it is lost, too. Another generation than 0 is refused, as nobody asks for one.
    """

    def __init__(self, application: Any) -> None:
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        # Google's clients encode a whole name, with its slashes and hyphens; S3's leave these as they are.
        path, mark, query = environ["RAW_URI"].partition("?")
        environ["RAW_URI"] = environ["REQUEST_URI"] = quote(unquote(path), safe="/-_.~") + mark + query
        if not environ.get("HTTP_AUTHORIZATION", "").startswith("AWS"):  # a bearer token; none, for a client without OAuth
            environ["HTTP_AUTHORIZATION"] = _SIGNED
        if (source := environ.pop("HTTP_X_GOOG_COPY_SOURCE", None)) is not None:
            environ["HTTP_X_AMZ_COPY_SOURCE"] = source
        environ.pop("HTTP_IF_NONE_MATCH", None)
        generation = environ.pop("HTTP_X_GOOG_IF_GENERATION_MATCH", None)
        if generation not in (None, "0"):
            start_response("501 Not Implemented", [])
            return []
        if generation == "0":
            environ["HTTP_IF_NONE_MATCH"] = "*"
        if environ["REQUEST_METHOD"] == "DELETE" and not self._is_there(environ):
            start_response("404 Not Found", [("Content-Length", "0")])
            return []
        answer: Iterable[bytes] = self._application(environ, start_response)
        return answer

    def _is_there(self, environ: dict[str, Any]) -> bool:
        """Google says so of a missing object that is to be deleted; S3 does not care."""
        said: list[str] = []
        list(self._application({**environ, "REQUEST_METHOD": "HEAD"}, lambda status, _, __=None: said.append(status)))
        return said[0].startswith("200")


if __name__ == "__main__":
    application = GoogleConditions(OneWriterAtATime(DomainDispatcherApplication(create_backend_app)))
    run_simple("127.0.0.1", int(sys.argv[1]), application, threaded=True, request_handler=MotoRequestHandler)
