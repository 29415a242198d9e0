package handover

import (
	"context"
	"time"

	"sluice"
)

// Batch is one batch at a provider.
type Batch struct {
	ID      string // of ours
	Job     string
	Ref     string // the provider's; empty until it has told it
	Lines   int    // that it was made of; 0 where it was not made
	Backend sluice.BackendID
	Replica bool // the backend keeps it, not its account
	// Provider, Site and Key are the account that has it.
	Provider  sluice.ProviderID
	Site, Key string
	Created   time.Time
	Expected  time.Time // when it is expected to have ended
}

// Store remembers which lines have been handed over. A line is in one batch at most.
type Store interface {
	// HandOver adds a batch that is about to be made, and its lines by number. A line that
	// is in another one already is an error, and nothing is added.
	HandOver(ctx context.Context, b *Batch, lines []int) error
	// HandedOver says what the provider calls a batch. ok is false where there is no such
	// batch any more, since somebody has found that it was not made.
	HandedOver(ctx context.Context, id, ref string) (ok bool, err error)
	// Handed finds the batch that a line is in; over says that the line is to run by itself.
	Handed(ctx context.Context, job string, line int) (b Batch, over, ok bool, err error)
	// TakeBack says that lines of a batch are to run by themselves, and tells whose batch it
	// is and of how many that is new.
	TakeBack(ctx context.Context, id string, lines []int) (p sluice.ProviderID, back int, err error)
	// NotMade forgets which lines are in a batch that the provider has told no name of. It is
	// over then: nobody can name it any more, and it is to be put in order.
	NotMade(ctx context.Context, id string) error
	// Refs are what a provider calls its batches that were made since a time.
	Refs(ctx context.Context, p sluice.ProviderID, since time.Time) ([]string, error)
	// HandedOut are batches that are not put in order and whose lines all have their end,
	// or are to run by themselves; of those that were tried, the ones that were so before a
	// time.
	HandedOut(ctx context.Context, before time.Time, limit int) ([]Batch, error)
	// Tidied says that a batch has been put in order, or that it was tried.
	Tidied(ctx context.Context, id string, now time.Time, done bool) error
}

// Share is what a provider has of a job.
type Share struct {
	Provider    sluice.ProviderID
	Ref         string // the provider's name of its batch; empty where it has told none
	Created     time.Time
	Lines, Back int // that it was given, and those of them that were taken back
}
