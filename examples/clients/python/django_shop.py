"""A shop in Django, in one file. Start it with `gunicorn --threads 4 django_shop`."""
import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path

from tidegate import Tidegate

tidegate = Tidegate(
    os.environ.get("TIDEGATE_URL", "http://127.0.0.1:8080"),
    policy="shop",
    timeout=int(os.environ.get("TIDEGATE_TIMEOUT_MS", "250")) / 1000,
    fail_open=os.environ.get("TIDEGATE_FAIL", "open") == "open",
)


def limit(get_response):
    def middleware(request):
        verdict = tidegate.check(
            ip=request.META["REMOTE_ADDR"], method=request.method, path=request.path
        )
        if verdict.status:
            return HttpResponse(verdict.body, status=verdict.status, headers=verdict.headers)
        response = get_response(request)
        for name, value in verdict.headers.items():
            response[name] = value
        return response

    return middleware


def cart(request):
    return HttpResponse("application: GET /cart\n", content_type="text/plain")


urlpatterns = [path("cart", cart)]
settings.configure(
    ALLOWED_HOSTS=["*"],
    MIDDLEWARE=["django_shop.limit"],
    ROOT_URLCONF="django_shop",
    SECRET_KEY="only for this example",
)
application = get_wsgi_application()
