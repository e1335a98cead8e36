"""A shop in FastAPI. Start it with `uvicorn fastapi_shop:app`."""
import os

from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse

from tidegate import AsyncTidegate

app = FastAPI()
tidegate = AsyncTidegate(
    os.environ.get("TIDEGATE_URL", "http://127.0.0.1:8080"),
    policy="shop",
    timeout=int(os.environ.get("TIDEGATE_TIMEOUT_MS", "250")) / 1000,
    fail_open=os.environ.get("TIDEGATE_FAIL", "open") == "open",
)


@app.middleware("http")
async def limit(request: Request, call_next):
    verdict = await tidegate.check(
        ip=request.client.host, method=request.method, path=request.url.path
    )
    if verdict.status:
        return Response(verdict.body, verdict.status, verdict.headers)
    response = await call_next(request)
    response.headers.update(verdict.headers)
    return response


@app.get("/cart", response_class=PlainTextResponse)
async def cart():
    return "application: GET /cart\n"
