package faults

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"sluice"
	"sluice/internal/app"
	"sluice/internal/wire"
)

// authority signs the certificates of test backends; this process trusts it.
var authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// trustTestAuthority makes the authority and has the system's verifier trust it,
// which reads the variable once. The file is this process's alone: others may run
// the same tests.
func trustTestAuthority() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	if authority.cert, err = x509.ParseCertificate(der); err != nil {
		panic(err)
	}
	authority.key = key
	dir, err := os.MkdirTemp("", "sluice-faults-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "authority.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		panic(err)
	}
	if err := os.Setenv("SSL_CERT_FILE", file); err != nil {
		panic(err)
	}
	if _, err := x509.SystemCertPool(); err != nil { // reads it
		panic(err)
	}
}

// certificate is one of the authority's.
func certificate(t *testing.T, host string, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.cert, &key.PublicKey, authority.key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// serveTLS serves h over TLS and returns its URL.
func serveTLS(t *testing.T, h http.Handler, c tls.Certificate) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0), TLSConfig: &tls.Config{Certificates: []tls.Certificate{c}}}
	var served sync.WaitGroup
	served.Go(func() { _ = server.ServeTLS(l, "", "") })
	t.Cleanup(func() {
		_ = server.Close()
		served.Wait()
	})
	return "https://" + l.Addr().String()
}

// A backend whose identity cannot be verified is not spoken to: nothing is sent,
// nothing charged, and a fallback takes the request.
func TestFault_U2_TLS(t *testing.T) {
	t.Parallel()
	p := serve(t)
	day := time.Now().Add(24 * time.Hour)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and shakes no hand
	must(t, err)
	t.Cleanup(func() { silent.Close() })
	for name, url := range map[string]string{
		"expired":         serveTLS(t, p, certificate(t, "127.0.0.1", time.Now().Add(-24*time.Hour))),
		"wrong host":      serveTLS(t, p, certificate(t, "elsewhere.example", day)),
		"no TLS":          "https" + p.url[len("http"):],
		"handshake hangs": "https://" + silent.Addr().String(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t, layout{backends: []backend{{name: "a", url: url}}})
			r := g.do(ask{tenant: hard})
			if r.status != 502 || r.header.Get("Sluice-Reason") != sluice.UpstreamTLS.String() || r.took > 15*time.Second {
				t.Errorf("got %v, reason %q", &r, r.header.Get("Sluice-Reason"))
			}
			if e := g.books().only(t); e.Outcome != sluice.Failed || e.Reason != sluice.UpstreamTLS || e.Cost != 0 || e.Usage.Source != sluice.UsageNone {
				t.Errorf("the entry is %v %q, %+v at %v", e.Outcome, e.Reason, e.Usage, e.Cost)
			}
			g = start(t, layout{backends: []backend{{name: "a", url: url}, {name: "b", url: p.url, fallback: true}}})
			if r := g.do(ask{}); !r.whole() || r.header.Get("Sluice-Backend") != "b" {
				t.Errorf("with a fallback: got %v", &r)
			}
		})
	}
	t.Run("sound", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("this system's verifier cannot be told to trust a test's authority")
		}
		g := start(t, layout{backends: []backend{{name: "a", url: serveTLS(t, p, certificate(t, "127.0.0.1", day))}}})
		if r := g.do(ask{}); !r.whole() {
			t.Errorf("got %v", &r)
		}
	})
}

// A name that does not resolve is a backend that cannot be reached. For how long
// the last good address stands in is a test of egress.
func TestFault_U3_NameDoesNotResolve(t *testing.T) {
	t.Parallel()
	p := serve(t)
	missing := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if host, _, _ := net.SplitHostPort(addr); host == "gone.example" {
			return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	o := func(o *app.Options) { o.Dial = missing }
	g := start(t, layout{backends: []backend{{name: "a", url: "http://gone.example"}}, options: o})
	r := g.do(ask{})
	if r.status != 502 || r.header.Get("Sluice-Reason") != sluice.UpstreamConnect.String() {
		t.Errorf("got %v, reason %q", &r, r.header.Get("Sluice-Reason"))
	}
	if e := g.books().only(t); e.Outcome != sluice.Failed || e.Cost != 0 || e.Usage.Source != sluice.UsageNone {
		t.Errorf("the entry is %v %q, %+v at %v", e.Outcome, e.Reason, e.Usage, e.Cost)
	}
	g = start(t, layout{backends: []backend{{name: "a", url: "http://gone.example"}, {name: "b", url: p.url, fallback: true}}, options: o})
	if r := g.do(ask{}); !r.whole() || r.header.Get("Sluice-Backend") != "b" {
		t.Errorf("with a fallback: got %v", &r)
	}
}

// An event without end costs no more memory than the bound of one event, and the
// backend is cut off.
func TestFault_U20_HugeEvent(t *testing.T) {
	// Not in parallel: it measures the heap of this process.
	const huge = 100 << 20
	sent := make(chan int, 1)
	addr := serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"begun"},"finish_reason":null}]}`+"\n\n"+
			`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"`)
		_ = http.NewResponseController(w).Flush()
		part, n := make([]byte, 64<<10), 0
		for i := range part {
			part[i] = 'x'
		}
		for n < huge {
			k, err := w.Write(part)
			if n += k; err != nil {
				break
			}
		}
		sent <- n
	}))
	g := start(t, layout{backends: []backend{{name: "a", url: "http://" + addr}}})
	g.do(ask{}) // warm: buffers and connections are there
	<-sent
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	peak, stop, done := uint64(0), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapAlloc)
			}
		}
	}()
	r := g.do(ask{})
	close(stop)
	<-done
	runtime.ReadMemStats(&after)
	if !r.cut(sluice.UpstreamTooLarge) {
		t.Errorf("got %v", &r)
	}
	const limit = wire.DefaultEventLimit
	if n := <-sent; n > limit+40<<20 { // and what sockets hold, which may grow to tens of MiB
		t.Errorf("the backend could send %d MiB before it was cut off", n>>20)
	}
	if grown := int64(peak) - int64(before.HeapAlloc); grown > 2*limit {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 3*limit {
		t.Errorf("%d MiB were allocated", allocated>>20)
	}
	for _, es := range g.books() {
		if e := es[0]; e.Outcome != sluice.Failed || e.Reason != sluice.UpstreamTooLarge || e.Usage.Output == 0 || e.Cost == 0 {
			t.Errorf("the entry is %v %q, %+v at %v", e.Outcome, e.Reason, e.Usage, e.Cost)
		}
	}
}
