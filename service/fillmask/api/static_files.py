"""Static files of the pages."""

from typing import Any

from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

from fillmask.middleware.transfer import PART_BYTES


class Files(StaticFiles):
    """Static files in small parts, because each slow client holds one."""

    def file_response(self, *args: Any, **keywords: Any) -> Response:
        response = super().file_response(*args, **keywords)
        if isinstance(response, FileResponse):
            response.chunk_size = PART_BYTES
        return response
