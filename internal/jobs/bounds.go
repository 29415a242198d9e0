package jobs

import "time"

// Bounds are the limits of files, jobs and workers. Zero fields take the defaults.
type Bounds struct {
	Lines     int           // of one job in flight in this process while it is relaxed
	PerTenant int           // lines of one tenant's in flight in this process
	Total     int           // lines in flight in this process
	Window    time.Duration // of a job that names none
	Lease     time.Duration // that a worker's claims last without its heartbeat

	JobLines   int   // lines of one job
	LineBytes  int64 // of one line
	FileBytes  int64 // of one file
	TenantJobs int   // that have not ended, of one tenant
	// TenantLines are waiting and running lines of one tenant's jobs.
	TenantLines int
	// TenantBytes are bytes of one tenant's files, outputs included.
	TenantBytes int64

	KeepFiles   time.Duration // of files that name no time
	KeepResults time.Duration // of jobs that name no time
	CancelGrace time.Duration // that running lines have when their job is cancelled
}

// DefaultBounds are those in force where the configuration says nothing.
func DefaultBounds() Bounds {
	return Bounds{
		Lines: 8, PerTenant: 64, Total: 128, Window: 24 * time.Hour, Lease: 30 * time.Second,
		JobLines: 50_000, LineBytes: 16 << 20, FileBytes: 200 << 20,
		TenantJobs: 100, TenantLines: 500_000, TenantBytes: 10 << 30,
		KeepFiles: 30 * 24 * time.Hour, KeepResults: 29 * 24 * time.Hour, CancelGrace: time.Minute,
	}
}

// withDefaults fills what is zero.
func (b Bounds) withDefaults() Bounds {
	d := DefaultBounds()
	for _, p := range []struct {
		of   *int
		from int
	}{{&b.Lines, d.Lines}, {&b.PerTenant, d.PerTenant}, {&b.Total, d.Total}, {&b.JobLines, d.JobLines}, {&b.TenantJobs, d.TenantJobs}, {&b.TenantLines, d.TenantLines}} {
		if *p.of <= 0 {
			*p.of = p.from
		}
	}
	for _, p := range []struct {
		of   *int64
		from int64
	}{{&b.LineBytes, d.LineBytes}, {&b.FileBytes, d.FileBytes}, {&b.TenantBytes, d.TenantBytes}} {
		if *p.of <= 0 {
			*p.of = p.from
		}
	}
	for _, p := range []struct {
		of   *time.Duration
		from time.Duration
	}{{&b.Window, d.Window}, {&b.Lease, d.Lease}, {&b.KeepFiles, d.KeepFiles}, {&b.KeepResults, d.KeepResults}, {&b.CancelGrace, d.CancelGrace}} {
		if *p.of <= 0 {
			*p.of = p.from
		}
	}
	return b
}
