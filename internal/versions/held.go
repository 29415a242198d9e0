package versions

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Held is a version that is in force although the configuration file says otherwise.
type Held struct {
	// FileHash is HashOf the file when the hold began, empty if it could not be read:
	// a file with another one is followed again.
	FileHash string  `json:"against"`
	Version  Version `json:"version"`
}

// heldFile is where a hold is kept, below the data directory.
const heldFile = "held.json"

// maxHeld bounds the file of a hold, in bytes: a configuration whose text is escaped.
const maxHeld = 64 << 20

// HeldPath is where the hold of a gateway with such a data directory is kept.
func HeldPath(data string) string { return filepath.Join(data, heldFile) }

// ReadHeld reads the hold below a data directory; nil if there is none.
func ReadHeld(data string) (*Held, error) {
	f, err := os.Open(HeldPath(data))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what is held: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxHeld))
	if err != nil {
		return nil, fmt.Errorf("read what is held: %w", err)
	}
	var h Held
	if err := json.Unmarshal(raw, &h); err != nil {
		return nil, fmt.Errorf("read what is held: %s is damaged: %w", HeldPath(data), err)
	}
	return &h, nil
}

// Keep writes the hold below a data directory, whole or not at all, for the owner's
// eyes alone.
func (h *Held) Keep(data string) error {
	raw, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("keep what is held: %w", err)
	}
	f, err := os.CreateTemp(data, heldFile+".*") // readable by the owner alone
	if err != nil {
		return fmt.Errorf("keep what is held: %w", err)
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), HeldPath(data))
	}
	if err != nil {
		return fmt.Errorf("keep what is held: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// Forget removes the hold below a data directory, if there is one.
func Forget(data string) error {
	if err := os.Remove(HeldPath(data)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("end what is held: %w", err)
	}
	return nil
}
