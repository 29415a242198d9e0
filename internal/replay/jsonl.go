package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sluice"
)

// line is the union of the JSONL formats.
type line struct {
	// Our own.
	At          *float64 `json:"at"`
	Client      string   `json:"client"`
	Input       int64    `json:"input"`
	Output      int64    `json:"output"`
	Model       string   `json:"model"`
	Task        string   `json:"task"`
	Stream      *bool    `json:"stream"`
	CancelAfter int      `json:"cancel_after"`
	// Mooncake (milliseconds) and Qwen (seconds, with a chat_id).
	Timestamp *float64        `json:"timestamp"`
	InputLen  int64           `json:"input_length"`
	OutputLen int64           `json:"output_length"`
	HashIDs   []int64         `json:"hash_ids"`
	ChatID    json.RawMessage `json:"chat_id"`
	Type      string          `json:"type"`
}

func readJSON(l *lines, first []byte, o ReadOptions) ([]Row, error) {
	var rows []Row
	for b, ok := first, true; ok; b, ok = l.next() {
		row, err := parseLine(b)
		if err != nil {
			return nil, l.at(err)
		}
		if rows, err = l.add(rows, row); err != nil {
			return nil, err
		}
		if done(rows, o) {
			break
		}
	}
	return rows, l.err()
}

func parseLine(b []byte) (Row, error) {
	var v line
	d := json.NewDecoder(bytes.NewReader(b))
	own := bytes.Contains(b, []byte(`"at"`))
	if own {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(&v); err != nil {
		return Row{}, fmt.Errorf("not a trace row: %w", err)
	}
	if own {
		return v.own()
	}
	return v.published()
}

func (v *line) own() (Row, error) {
	if v.At == nil {
		return Row{}, errors.New(`"at" is missing: seconds since the start`)
	}
	at, err := span(*v.At)
	if err != nil {
		return Row{}, err
	}
	if _, err := sluice.ParseTask(v.Task); err != nil {
		return Row{}, err
	}
	if v.CancelAfter < 0 {
		return Row{}, errors.New("cancel_after is negative")
	}
	row := Row{
		At: at, Client: v.Client, Model: v.Model, Task: v.Task,
		Whole: v.Stream != nil && !*v.Stream, CancelAfter: v.CancelAfter,
	}
	return row, row.set(v.Input, v.Output)
}

func (v *line) published() (Row, error) {
	if v.Timestamp == nil {
		return Row{}, errors.New(`neither "at" nor "timestamp": not a known trace row`)
	}
	scale := 1e-3
	row := Row{Blocks: v.HashIDs}
	if len(v.ChatID) > 0 {
		scale = 1
		row.Client, row.Task = string(bytes.Trim(v.ChatID, `"`)), v.Type
		if _, err := sluice.ParseTask(row.Task); err != nil {
			row.Task = ""
		}
	}
	at, err := span(*v.Timestamp * scale)
	if err != nil {
		return Row{}, err
	}
	row.At = at.Round(time.Microsecond)
	return row, row.set(v.InputLen, v.OutputLen)
}

func (r *Row) set(input, output int64) error {
	if input < 0 || output < 0 || input > maxTokens || output > maxTokens {
		return fmt.Errorf("tokens %d in, %d out: write numbers from 0 to %d", input, output, maxTokens)
	}
	r.Input, r.Output = max(input, 1), max(output, 1)
	return nil
}
