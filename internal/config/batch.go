package config

import (
	"net/url"
	"time"

	"sluice/internal/jobs"
)

// Batch bounds files and batches, and how their lines are run.
type Batch struct {
	Window      Duration `json:"window,omitempty" jsonschema:"how long a batch has that names no time; what has not been answered then expires"`
	Lines       Count    `json:"lines,omitempty" jsonschema:"lines of one batch that run at a time in this process; twice as many when it is predicted to miss its deadline, then four times as many, and as class standard where the plan has it"`
	PerTenant   Count    `json:"per_tenant,omitempty" jsonschema:"lines of one tenant that run at a time in this process"`
	Total       Count    `json:"total,omitempty" jsonschema:"lines that run at a time in this process"`
	Lease       Duration `json:"lease,omitempty" jsonschema:"how long lines stay a worker's that says nothing; then others run them again"`
	CancelGrace Duration `json:"cancel_grace,omitempty" jsonschema:"how long running lines have when their batch is cancelled"`

	JobLines    Count    `json:"job_lines,omitempty" jsonschema:"lines of one batch"`
	LineBytes   Bytes    `json:"line_bytes,omitempty" jsonschema:"size of one line"`
	FileBytes   Bytes    `json:"file_bytes,omitempty" jsonschema:"size of one file"`
	TenantJobs  Count    `json:"tenant_jobs,omitempty" jsonschema:"batches of one tenant that have not ended"`
	TenantLines Count    `json:"tenant_lines,omitempty" jsonschema:"lines of those, together"`
	TenantBytes Bytes    `json:"tenant_bytes,omitempty" jsonschema:"size of one tenant's files together, results included"`
	KeepFiles   Duration `json:"keep_files,omitempty" jsonschema:"how long a file is kept that names no time"`
	KeepResults Duration `json:"keep_results,omitempty" jsonschema:"how long results are kept of a batch that names no time"`

	PublicURL string `json:"public_url,omitempty" jsonschema:"address by which clients call the gateway, such as https://llm.example.com: results_url of message batches, and where answers are that come later, begin with it; they are paths if left out"`
}

func (b *Batch) setDefaults() {
	d := jobs.DefaultBounds()
	*b = Batch{
		Window: Duration(d.Window), Lines: Count(d.Lines), PerTenant: Count(d.PerTenant), Total: Count(d.Total), Lease: Duration(d.Lease), CancelGrace: Duration(d.CancelGrace),
		JobLines: Count(d.JobLines), LineBytes: Bytes(d.LineBytes), FileBytes: Bytes(d.FileBytes),
		TenantJobs: Count(d.TenantJobs), TenantLines: Count(d.TenantLines), TenantBytes: Bytes(d.TenantBytes), KeepFiles: Duration(d.KeepFiles), KeepResults: Duration(d.KeepResults),
	}
}

// bounds is Batch for the process.
func (b *Batch) bounds() jobs.Bounds {
	return jobs.Bounds{
		Lines: int(b.Lines), PerTenant: int(b.PerTenant), Total: int(b.Total), Window: time.Duration(b.Window), Lease: time.Duration(b.Lease), CancelGrace: time.Duration(b.CancelGrace),
		JobLines: int(b.JobLines), LineBytes: int64(b.LineBytes), FileBytes: int64(b.FileBytes),
		TenantJobs: int(b.TenantJobs), TenantLines: int(b.TenantLines), TenantBytes: int64(b.TenantBytes), KeepFiles: time.Duration(b.KeepFiles), KeepResults: time.Duration(b.KeepResults),
	}
}

// The largest bounds that there is memory for, and the times that make sense.
const (
	maxBatchLines = 10_000
	maxJobLines   = 1_000_000
	maxKept       = Duration(10 * 365 * 24 * time.Hour)
)

func (v *validator) batch() {
	b := &v.c.Batch
	if u, err := url.Parse(b.PublicURL); b.PublicURL != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.Fragment != "") {
		v.fail("batch.public_url", "write https://HOST", "it is no address of a server")
	}
	for _, n := range []struct {
		path     string
		is, most Count
	}{
		{"batch.lines", b.Lines, maxBatchLines},
		{"batch.per_tenant", b.PerTenant, maxBatchLines},
		{"batch.total", b.Total, maxBatchLines},
		{"batch.job_lines", b.JobLines, maxJobLines},
		{"batch.tenant_jobs", b.TenantJobs, 100_000},
		{"batch.tenant_lines", b.TenantLines, 1 << 30},
	} {
		if n.is < 1 || n.is > n.most {
			v.fail(n.path, "write a number from 1 to "+n.most.String(), "%d is out of range", n.is)
		}
	}
	for _, n := range []struct {
		path     string
		is, most Bytes
	}{{"batch.line_bytes", b.LineBytes, 64 << 20}, {"batch.file_bytes", b.FileBytes, 16 << 30}, {"batch.tenant_bytes", b.TenantBytes, 1 << 50}} {
		if n.is < 1 || n.is > n.most {
			v.fail(n.path, "write a size up to "+n.most.String(), "%s is out of range", n.is)
		}
	}
	for _, n := range []struct {
		path        string
		is          Duration
		least, most Duration
	}{
		{"batch.window", b.Window, Duration(time.Minute), Duration(30 * 24 * time.Hour)},
		{"batch.lease", b.Lease, Duration(3 * time.Second), Duration(time.Hour)},
		{"batch.cancel_grace", b.CancelGrace, Duration(time.Second), Duration(time.Hour)},
		{"batch.keep_files", b.KeepFiles, Duration(time.Hour), maxKept},
		{"batch.keep_results", b.KeepResults, Duration(time.Hour), maxKept},
	} {
		if n.is < n.least || n.is > n.most {
			v.fail(n.path, "write a time from "+n.least.String()+" to "+n.most.String(), "%s is out of range", n.is)
		}
	}
}
