package cache_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sluice"
	"sluice/internal/cache"
)

func item(owner string, n, size int, expires time.Time) cache.Item {
	return cache.Item{
		Owner: cache.Owner{ID: sluice.TenantID(owner)}, Scope: fmt.Sprintf("%064x", owner), Key: cache.Key{byte(n >> 8), byte(n), owner[0]},
		Value: bytes.Repeat([]byte{byte(n)}, size), Expires: expires,
	}
}

// conform is what every store does.
func conform(t *testing.T, open func(t *testing.T, b cache.Bounds) cache.Store) {
	ctx := context.Background()
	soon := time.Now().Add(time.Hour)
	get := func(t *testing.T, s cache.Store, i cache.Item, want bool) {
		t.Helper()
		v, ok := s.Get(ctx, i.Scope, i.Key)
		if ok != want || ok && !bytes.Equal(v, i.Value) {
			t.Errorf("got %d bytes, %v, want %v", len(v), ok, want)
		}
	}
	put := func(t *testing.T, s cache.Store, i cache.Item, want bool) {
		t.Helper()
		i.Value = bytes.Clone(i.Value)
		if ok := s.Put(ctx, i); ok != want {
			t.Errorf("kept: %v, want %v", ok, want)
		}
	}
	t.Run("keeps and forgets", func(t *testing.T) {
		s := open(t, cache.Bounds{})
		a, b := item("a", 1, 100, soon), item("b", 1, 100, soon)
		get(t, s, a, false)
		put(t, s, a, true)
		put(t, s, b, true)
		get(t, s, a, true)
		wrong := a
		wrong.Scope = b.Scope
		get(t, s, wrong, false)
		again := a
		again.Value = []byte("another")
		put(t, s, again, true)
		get(t, s, again, true)
		levels, err := s.Levels(ctx)
		if err != nil || len(levels) != 2 || levels[0] != (cache.Level{Owner: "a", Entries: 1, Bytes: 7 + 512}) {
			t.Errorf("levels %+v, %v", levels, err)
		}
		if n, err := s.Purge(ctx, a.Scope); n != 1 || err != nil {
			t.Errorf("purged %d, %v", n, err)
		}
		get(t, s, again, false)
		get(t, s, b, true)
		s.Drop(ctx, b.Scope, b.Key)
		get(t, s, b, false)
		for i := range 5 {
			put(t, s, item("a", i, 10, soon), true)
			put(t, s, item("b", i, 10, soon), true)
		}
		if n, err := s.Purge(ctx, ""); n != 10 || err != nil {
			t.Errorf("purged %d of all, %v", n, err)
		}
		if levels, err := s.Levels(ctx); len(levels) != 0 || err != nil {
			t.Errorf("levels %+v, %v", levels, err)
		}
	})
	t.Run("bounds", func(t *testing.T) {
		s := open(t, cache.Bounds{PerOwner: 4000, Total: 6000})
		put(t, s, item("a", 0, 4000, soon), false)
		for i := range 10 {
			put(t, s, item("a", i, 488, soon.Add(time.Duration(i)*time.Second)), true)
		}
		levels, _ := s.Levels(ctx)
		if len(levels) != 1 || levels[0].Entries != 4 || levels[0].Bytes != 4000 {
			t.Errorf("levels %+v, want 4 of 1000 bytes", levels)
		}
		get(t, s, item("a", 5, 488, soon), false)
		get(t, s, item("a", 9, 488, soon), true)
		for i := range 4 {
			put(t, s, item("b", i, 488, soon.Add(time.Minute)), true)
		}
		sum := int64(0)
		levels, _ = s.Levels(ctx)
		for _, l := range levels {
			sum += l.Bytes
		}
		if sum != 6000 {
			t.Errorf("%d bytes are kept, want 6000: %+v", sum, levels)
		}
		get(t, s, item("b", 3, 488, soon), true)
	})
	t.Run("expiry", func(t *testing.T) {
		s := open(t, cache.Bounds{})
		i := item("a", 1, 10, time.Now().Add(30*time.Millisecond))
		put(t, s, i, true)
		for begun := time.Now(); time.Since(begun) < 5*time.Second; time.Sleep(5 * time.Millisecond) {
			if _, ok := s.Get(ctx, i.Scope, i.Key); !ok {
				return
			}
		}
		t.Error("it is there after its time")
	})
}

func TestMemory(t *testing.T) {
	conform(t, func(_ *testing.T, b cache.Bounds) cache.Store { return cache.NewMemory(b) })
}

func openDisk(t *testing.T, dir string, b cache.Bounds) *cache.Disk {
	t.Helper()
	d, err := cache.OpenDisk(dir, b)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDisk(t *testing.T) {
	conform(t, func(t *testing.T, b cache.Bounds) cache.Store { return openDisk(t, t.TempDir(), b) })
}

// What is on disk outlives the process, whatever was being written when it died.
func TestDiskIsFoundAgain(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	d := openDisk(t, dir, cache.Bounds{})
	now := time.Now()
	kept, old, more := item("a", 1, 100, now.Add(time.Hour)), item("a", 2, 100, now.Add(-time.Second)), item("../b/c", 3, 100, now.Add(time.Hour))
	for _, i := range []cache.Item{kept, old, more} {
		d.Put(ctx, i)
	}
	for path, text := range map[string]string{"new/123": "half", kept.Scope + "/strange": "x", fmt.Sprintf("%064d", 7) + "/" + kept.Key.String() + "-zzzz": "nobody's"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again := openDisk(t, dir, cache.Bounds{})
	if !bytes.Equal(again.Secret(), d.Secret()) {
		t.Error("the secret is another")
	}
	levels, err := again.Levels(ctx)
	if err != nil || len(levels) != 2 || levels[0] != (cache.Level{Owner: "../b/c", Entries: 1, Bytes: 612}) || levels[1] != (cache.Level{Owner: "a", Entries: 1, Bytes: 612}) {
		t.Errorf("levels %+v, %v", levels, err)
	}
	if v, ok := again.Get(ctx, kept.Scope, kept.Key); !ok || !bytes.Equal(v, kept.Value) {
		t.Errorf("got %q, %v", v, ok)
	}
	files := 0
	_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, _ error) error {
		if !e.IsDir() && e.Name() != "owner" && e.Name() != "secret" {
			files++
		}
		return nil
	})
	if files != 2 {
		t.Errorf("%d files are left, want the two entries", files)
	}
	small := openDisk(t, dir, cache.Bounds{PerOwner: 700, Total: 700})
	if levels, _ := small.Levels(ctx); len(levels) != 1 {
		t.Errorf("within a smaller bound: %+v", levels)
	}
}

// An entry that is damaged, or in the place of another, is a miss and goes.
func TestDamagedEntriesAreMisses(t *testing.T) {
	for name, damage := range map[string]func(b []byte) []byte{
		"a bit":   func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"cut":     func(b []byte) []byte { return b[:len(b)-1] },
		"empty":   func([]byte) []byte { return nil },
		"zeros":   func(b []byte) []byte { return make([]byte, len(b)) },
		"another": nil,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			x := &stage{}
			c := newCache(x, openDisk(t, dir, cache.Bounds{}), nil)
			c.Run(context.Background(), asking(t, 100), &heard{})
			c.Run(context.Background(), asking(t, 200), &heard{})
			files, err := filepath.Glob(filepath.Join(dir, "*", "*-*"))
			if err != nil || len(files) != 2 {
				t.Fatalf("files %v, %v", files, err)
			}
			for i, file := range files {
				b, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if damage != nil {
					b = damage(b)
				} else if b, err = os.ReadFile(files[1-i]); err != nil || i == 1 {
					break
				}
				if err := os.WriteFile(file, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			misses := 0
			for _, size := range []int{100, 200} {
				client := &heard{}
				if c.Run(context.Background(), asking(t, size), client); client.told == "miss" {
					misses++
				}
				if again := (&heard{}); c.Run(context.Background(), asking(t, size), again).Err != nil || again.told != "hit; age=0" || !bytes.Equal(again.b, client.b) {
					t.Errorf("then it is %q", again.told)
				}
			}
			if want := map[bool]int{true: 1, false: 2}[damage == nil]; misses != want {
				t.Errorf("%d misses, want %d", misses, want)
			}
		})
	}
}

func openRedis(t *testing.T, o cache.RedisOptions) *cache.Redis {
	t.Helper()
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	r, err := cache.NewRedis(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestRedis(t *testing.T) {
	url := os.Getenv("SLUICE_TEST_REDIS")
	if url == "" {
		t.Skip("no Redis: run this by scripts/redis")
	}
	conform(t, func(t *testing.T, b cache.Bounds) cache.Store {
		r := openRedis(t, cache.RedisOptions{URL: url, Timeout: 5 * time.Second, Bounds: b})
		if _, err := r.Purge(context.Background(), ""); err != nil {
			t.Fatal(err)
		}
		return r
	})
}

// A Redis that is not there, says nothing, or says nonsense is a miss within the time,
// and after three of them it is not asked.
func TestRedisThatDoesNotAnswer(t *testing.T) {
	for name, serve := range map[string]func(net.Conn){
		"silent":   func(net.Conn) {},
		"nonsense": func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
		"gone":     func(c net.Conn) { _ = c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			dials := 0
			var ends []net.Conn
			r := openRedis(t, cache.RedisOptions{
				URL: "redis://x:6379/0", Timeout: 20 * time.Millisecond,
				Dial: func(context.Context, string, string) (net.Conn, error) {
					a, b := net.Pipe()
					dials++
					ends = append(ends, b)
					go func() { // reads what is asked, so that it can be
						serve(b)
						buf := make([]byte, 1<<10)
						for {
							if _, err := b.Read(buf); err != nil {
								return
							}
						}
					}()
					return a, nil
				},
			})
			defer func() {
				for _, c := range ends {
					_ = c.Close()
				}
			}()
			x := &stage{}
			c := newCache(x, r, nil)
			begun := time.Now()
			for range 10 {
				client := &heard{}
				if res := c.Run(context.Background(), asking(t, 100), client); res.Err != nil || client.told != "miss" {
					t.Fatalf("%v, %q", res.Err, client.told)
				}
			}
			if took := time.Since(begun); took > 3*time.Second || x.runs != 10 {
				t.Errorf("10 requests took %v and were run %d times", took, x.runs)
			}
			if dials > 4 {
				t.Errorf("it was dialled %d times, want at most once for each of three failures", dials)
			}
		})
	}
}
