package report_test

import (
	"context"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"sluice/internal/tabletop/report"
)

// chromium is the browser, if the machine has one.
func chromium(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome", "Chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("SLUICE_TEST_BROWSER") != "" {
		t.Fatal("no chromium on PATH, which scripts/browser should have installed")
	}
	t.Skip("no chromium on PATH: install it (Debian: apt-get install chromium) to lay the page out in a browser")
	return ""
}

// look is a page that opens the report in frames of several widths and says what
// it found there, as JSON in its own title.
const look = `<!doctype html><title>none</title><body><script>
const widths = [360, 800, 1600], found = [];
const overlap = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
Promise.all(widths.map(w => new Promise(done => {
  const f = document.createElement("iframe");
  f.width = w; f.height = 3000; f.src = "/report";
  f.onload = () => {
    const d = f.contentDocument, out = {width: w, overflow: d.documentElement.scrollWidth - w, charts: 0, collisions: [], clipped: []};
    out.scripted = d.querySelectorAll(".chip[aria-expanded=true]").length;
    out.styled = f.contentWindow.getComputedStyle(d.querySelector(".card")).borderTopWidth;
    for (const chart of d.querySelectorAll("details[open] .chart, .timeline")) {
      out.charts++;
      const box = chart.getBoundingClientRect(), texts = [...chart.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
      texts.forEach(([s, a], i) => {
        if (a.left < box.left - 1 || a.right > box.right + 1) out.clipped.push(s);
        for (const [u, b] of texts.slice(i + 1)) if (overlap(a, b)) out.collisions.push(s + " and " + u);
      });
    }
    const chart = d.querySelector("details[open] .chart"), box = chart.getBoundingClientRect();
    chart.dispatchEvent(new f.contentWindow.PointerEvent("pointermove", {clientX: box.left + box.width / 2, clientY: box.top + 20, bubbles: true}));
    out.told = d.getElementById("tip").innerText;
    found.push(out);
    done();
  };
  document.body.append(f);
}))).then(() => { document.title = JSON.stringify(found); });
</script>`

func TestPageInABrowser(t *testing.T) {
	bin := chromium(t)
	page := render(t, made(shape{policies: pair, tenants: 3, buckets: 120}), report.HTMLOptions{Source: "name: x\n"})
	mux := http.NewServeMux()
	mux.HandleFunc("/report", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(page)) })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(look)) })
	server := httptest.NewServer(mux)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, bin, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--virtual-time-budget=20000", "--dump-dom", server.URL+"/").Output()
	if err != nil {
		t.Fatalf("%s: %v", bin, err)
	}
	title := regexp.MustCompile(`(?s)<title>(.*?)</title>`).FindSubmatch(out)
	var found []struct {
		Width, Overflow, Charts, Scripted int
		Styled, Told                      string
		Collisions, Clipped               []string
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(string(title[1]))), &found); err != nil {
		t.Fatalf("%v in %q", err, title[1])
	}
	if len(found) != 3 {
		t.Fatalf("got %d widths, want 3", len(found))
	}
	for _, f := range found {
		if f.Overflow > 0 {
			t.Errorf("at %d px the page is %d px too wide", f.Width, f.Overflow)
		}
		if len(f.Collisions)+len(f.Clipped) > 0 {
			t.Errorf("at %d px labels collide %q or are cut off %q", f.Width, f.Collisions, f.Clipped)
		}
		if f.Charts != 19 || f.Scripted != 2 || f.Styled != "4px" {
			t.Errorf("at %d px: got %d charts, %d open groups, a border of %s; want 19, 2 and 4px", f.Width, f.Charts, f.Scripted, f.Styled)
		}
		if !regexp.MustCompile(`(?s)^\dm\d+s to .*sluice good.*naive good.*/s`).MatchString(f.Told) {
			t.Errorf("at %d px pointing at a chart tells %q", f.Width, f.Told)
		}
	}
}
