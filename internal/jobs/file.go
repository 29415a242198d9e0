package jobs

import (
	"time"

	"sluice"
)

// ChunkBytes is the size of the parts in which files are stored, and the most of a file
// that is in memory for one reader or writer.
const ChunkBytes = 1 << 20

// The purposes of files that the machinery itself knows. A face may have others.
const (
	PurposeBatch  = "batch"        // lines of an OpenAIBatch
	PurposeOutput = "batch_output" // results of one
)

// File is a file of a tenant's. Its bytes are in the store, in chunks.
type File struct {
	ID      FileID
	Tenant  sluice.TenantID
	Project sluice.ProjectID
	Name    string // as the client calls it
	Purpose string
	Bytes   int64
	Ready   bool      // written whole; files that are not are seen by their writer alone
	Hidden  bool      // of a job's own: not listed, and deleted with it
	Created time.Time // ascending with the order of lists
	Expires time.Time // zero is never
}

// Over reports whether the file's time is over: then there is none.
func (f *File) Over(now time.Time) bool { return !f.Expires.IsZero() && !now.Before(f.Expires) }

// NewFile is a file that is to be written.
type NewFile struct {
	Tenant  sluice.TenantID
	Project sluice.ProjectID
	Name    string
	Purpose string
	Keep    time.Duration // 0 is Bounds.KeepFiles
	Hidden  bool
	Max     int64 // bytes; 0 is Bounds.FileBytes
}

// FileQuery asks for a page of a tenant's files.
type FileQuery struct {
	Tenant  sluice.TenantID
	Project sluice.ProjectID // empty is all
	Purpose string           // empty is all
	After   FileID           // the last of the page before; empty begins
	Limit   int              // 1 to 10,000; 0 is 100
	Oldest  bool             // first; else the newest
}
