"""What the tests of pages would notice in a browser."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.browser import watch

pytestmark = pytest.mark.xdist_group(__name__)


@pytest.fixture
def page(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text('<!doctype html><html data-ready="yes"><title>plain</title>')
    context = browser.new_context()
    page = context.new_page()
    page.goto(path.as_uri())
    yield page
    context.close()


@pytest.fixture
def serve_text():
    """Serves a text at every path of an address of its own."""
    servers = []

    def serve(text):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *words):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("script", "noticed"),
    [
        ("() => { console.error('wrong'); }", "console: wrong"),
        ("() => { setTimeout(() => { throw new Error('wrong'); }); }", "script: wrong"),
        ("() => { setTimeout(() => alert('wrong')); }", "dialog: wrong"),
        ("() => { fetch('https://nowhere.invalid/a').catch(() => 0); }", "request: https://now"),
        ("() => { new Image().src = 'http://nowhere.invalid/a.png'; }", "request: http://now"),
        ("() => { new Image().src = 'absent.png'; }", "not loaded: file:///"),
        ("() => { location.href = 'https://nowhere.invalid/b'; }", "request: https://now"),
    ],
)
def test_what_no_page_may_do_is_noticed(page, script, noticed):
    complaints = []
    watch(page, complaints)
    page.evaluate(script)
    for _ in range(100):
        if any(each.startswith(noticed) for each in complaints):
            break
        page.wait_for_timeout(50)
    assert [each for each in complaints if each.startswith(noticed)]


def test_a_page_may_load_what_is_its_own(page, tmp_path):
    complaints = []
    watch(page, complaints)
    (tmp_path / "own.js").write_text("document.title = 'loaded'")
    page.evaluate(
        """async () => {
          const picture = new Image();
          picture.src = "data:image/gif;base64,R0lGODdhAQABAIAAAAAAAAAAACwAAAAAAQABAAACAkQBADs=";
          const script = document.createElement("script");
          script.src = "own.js";
          await new Promise((resolve) => {
            script.onload = resolve;
            document.head.append(script);
          });
          console.warn("that is all");
        }"""
    )
    assert page.title() == "loaded"
    assert complaints == []


def test_open_page_waits_and_sets_the_window(open_page, tmp_path):
    path = tmp_path / "slow #1.html"
    path.write_text(
        "<!doctype html><html data-ready='yes'><script>setTimeout(() => {"
        "document.documentElement.dataset.loaded = 'yes'; }, 200)</script>"
    )
    page = open_page(path, width=390, height=700, dark=True, touch=True, anchor="here")
    assert page.evaluate("document.documentElement.dataset.loaded") == "yes"
    assert page.evaluate("[innerWidth, location.hash, navigator.maxTouchPoints > 0]") == [
        *(980, "#here"),  # the page has no viewport of its own
        True,
    ]
    assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")


def test_a_served_page_may_ask_its_own_server_alone(page, serve_text):
    complaints = []
    own, other = serve_text("own"), serve_text("other")
    watch(page, complaints, own=(own,), forgiven=["console:", "not loaded:"])
    page.goto(own)
    script = "(address) => { new Image().src = address + 'a.png'; }"
    for address in (own, other):
        with page.expect_request(f"{address}a.png"):
            page.evaluate(script, address)
    assert complaints == [f"request: {other}a.png"]
