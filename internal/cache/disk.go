package cache

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// secretBytes is the length of the secret beside the files.
const secretBytes = 32

// The names inside of the directory.
const (
	secretFile = "secret"
	tempDir    = "new"
	nameFile   = "owner"
)

// Disk is a Store in a directory, which no other process uses:
//
//	DIR/secret            of the keys and codes of what is in it
//	DIR/new/              what is being written
//	DIR/SCOPE/owner       whose entries these are, for people
//	DIR/SCOPE/KEY-EXPIRY  an entry, EXPIRY in milliseconds to base 36
//
// An entry is written beside and then renamed, so that a crash leaves it whole or not at
// all; it is not synced, and what a loss of power makes of it is a miss by its code. What
// there is is known from the names: nothing but the entry is read for a hit.
type Disk struct {
	dir    string
	secret []byte

	mu    sync.Mutex
	shelf *shelf // guarded by mu
}

var _ Store = (*Disk)(nil)

// OpenDisk opens a directory, which is made if there is none, and finds what is in it.
// What has expired, is beyond the bounds or was not finished is removed.
func OpenDisk(dir string, b Bounds) (*Disk, error) {
	d := &Disk{dir: dir, shelf: newShelf(b)}
	if err := os.MkdirAll(filepath.Join(dir, tempDir), 0o700); err != nil {
		return nil, fmt.Errorf("make the output cache's directory: %w", err)
	}
	if err := d.clear(tempDir); err != nil {
		return nil, err
	}
	if err := d.readSecret(); err != nil {
		return nil, err
	}
	if err := d.find(); err != nil {
		return nil, err
	}
	return d, nil
}

// Secret is the secret that stands beside the files.
func (d *Disk) Secret() []byte { return d.secret }

func (d *Disk) readSecret() error {
	at := filepath.Join(d.dir, secretFile)
	b, err := os.ReadFile(at)
	if err == nil && len(b) == secretBytes {
		d.secret = b
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the output cache's secret: %w", err)
	}
	d.secret = make([]byte, secretBytes)
	_, _ = rand.Read(d.secret) // it does not fail
	if err := d.write(at, d.secret); err != nil {
		return fmt.Errorf("write the output cache's secret: %w", err)
	}
	return nil
}

// found is a file that was found at the start.
type found struct {
	*book
	used time.Time
}

// find puts what there is onto the shelf, what was used longest ago first.
func (d *Disk) find() error {
	scopes, err := os.ReadDir(d.dir)
	if err != nil {
		return fmt.Errorf("list the output cache's directory: %w", err)
	}
	var all []found
	names := make(map[string]string)
	for _, s := range scopes {
		if !s.IsDir() || len(s.Name()) != 2*len(Key{}) {
			continue
		}
		name, err := os.ReadFile(filepath.Join(d.dir, s.Name(), nameFile))
		if err != nil { // of whom they are is not known, so that nobody could be told
			_ = d.clear(s.Name())
			continue
		}
		names[s.Name()] = string(name)
		all = append(all, d.entries(s.Name())...)
	}
	slices.SortStableFunc(all, func(a, b found) int { return a.used.Compare(b.used) })
	now := time.Now()
	for _, f := range all {
		if !now.Before(f.expires) || !d.shelf.fits(f.size) {
			d.unlink(f.book)
			continue
		}
		d.unlink(d.shelf.add(f.book, names[f.scope])...)
	}
	return nil
}

func (d *Disk) entries(scope string) (out []found) {
	files, err := os.ReadDir(filepath.Join(d.dir, scope))
	if err != nil {
		return nil
	}
	for _, f := range files {
		if f.Name() == nameFile {
			continue
		}
		b, ok := parseName(f.Name())
		info, err := f.Info()
		if !ok || err != nil {
			_ = os.Remove(filepath.Join(d.dir, scope, f.Name()))
			continue
		}
		b.scope, b.size = scope, info.Size()+overhead
		out = append(out, found{b, info.ModTime()})
	}
	return out
}

func parseName(name string) (*book, bool) {
	key, expiry, ok := strings.Cut(name, "-")
	ms, err := strconv.ParseInt(expiry, 36, 64)
	raw, bad := hex.DecodeString(key)
	if !ok || err != nil || bad != nil || len(raw) != len(Key{}) {
		return nil, false
	}
	return &book{key: Key(raw), expires: time.UnixMilli(ms)}, true
}

func (d *Disk) path(b *book) string {
	return filepath.Join(d.dir, b.scope, b.key.String()+"-"+strconv.FormatInt(b.expires.UnixMilli(), 36))
}

// unlink removes files. One that cannot be removed is found at the next start.
func (d *Disk) unlink(books ...*book) {
	for _, b := range books {
		_ = os.Remove(d.path(b))
	}
}

// clear removes what is in a directory inside.
func (d *Disk) clear(name string) error {
	files, err := os.ReadDir(filepath.Join(d.dir, name))
	if err != nil {
		return fmt.Errorf("list the output cache's directory: %w", err)
	}
	for _, f := range files {
		_ = os.Remove(filepath.Join(d.dir, name, f.Name()))
	}
	return nil
}

// write writes a file beside and puts it in its place.
func (d *Disk) write(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Join(d.dir, tempDir), "")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Get implements Store.
func (d *Disk) Get(_ context.Context, scope string, k Key) ([]byte, bool) {
	d.mu.Lock()
	b, gone := d.shelf.find(time.Now(), scope, k)
	d.mu.Unlock()
	if gone != nil {
		d.unlink(gone)
	}
	if b == nil {
		return nil, false
	}
	value, err := os.ReadFile(d.path(b))
	if err != nil { // replaced or evicted meanwhile, or taken away
		return nil, false
	}
	return value, true
}

// Put implements Store.
func (d *Disk) Put(_ context.Context, i Item) bool {
	b := &book{key: i.Key, scope: i.Scope, size: int64(len(i.Value)) + overhead, expires: i.Expires.Truncate(time.Millisecond)}
	d.mu.Lock()
	fits, known := d.shelf.fits(b.size), d.shelf.owners[i.Scope] != nil
	d.mu.Unlock()
	if !fits {
		return false
	}
	dir := filepath.Join(d.dir, i.Scope)
	if !known {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return false
		}
		if err := d.write(filepath.Join(dir, nameFile), []byte(i.Owner.String())); err != nil {
			return false
		}
	}
	if err := d.write(d.path(b), i.Value); err != nil {
		return false
	}
	d.mu.Lock()
	gone := d.shelf.add(b, i.Owner.String())
	d.mu.Unlock()
	for _, old := range gone {
		if d.path(old) != d.path(b) {
			d.unlink(old)
		}
	}
	return true
}

// Drop implements Store.
func (d *Disk) Drop(_ context.Context, scope string, k Key) {
	d.mu.Lock()
	b, gone := d.shelf.find(time.Now(), scope, k)
	if b != nil {
		gone = d.shelf.remove(b)
	}
	d.mu.Unlock()
	if gone != nil {
		d.unlink(gone)
	}
}

// Purge implements Store.
func (d *Disk) Purge(_ context.Context, scope string) (int, error) {
	d.mu.Lock()
	gone := d.shelf.purge(scope)
	d.mu.Unlock()
	var errs []error
	for _, b := range gone {
		if err := os.Remove(d.path(b)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return len(gone), errors.Join(errs...)
}

// Levels implements Store.
func (d *Disk) Levels(context.Context) ([]Level, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shelf.levels(), nil
}

// Close implements Store.
func (d *Disk) Close() error { return nil }
