package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
	"sluice/internal/dryrun"
	"sluice/internal/versions"
)

// Version is something that has been in force.
type Version struct {
	Number   int64      `json:"number,omitempty" doc:"Counts what has been in force; left out while the store has not recorded it"`
	Hash     string     `json:"hash" doc:"Of what it means, without secrets: recorded with every request"`
	At       *time.Time `json:"at,omitempty" doc:"When it was put in force"`
	Author   string     `json:"author,omitempty" doc:"Who did; file:HASH is whoever wrote the file with those bytes"`
	Reason   string     `json:"reason,omitempty" doc:"Why"`
	Source   string     `json:"source" enum:"file,api,rollback" doc:"Whether the file was read, routes were changed here, or an earlier version was gone back to"`
	Of       int64      `json:"of,omitempty" doc:"Of a rollback, what it went back to"`
	File     string     `json:"file,omitempty" doc:"The file that it was made of"`
	FileHash string     `json:"file_hash,omitempty" doc:"Of that file's bytes"`
}

// VersionList is a page of what has been in force.
type VersionList struct {
	Versions []Version `json:"versions" doc:"Newest first"`
	Current  string    `json:"current" doc:"Hash of the one in force"`
	OffFile  string    `json:"off_file,omitempty" doc:"Why the file on disk is not what is in force; left out where it is"`
	Partial  string    `json:"partial,omitempty" doc:"Why the list is not whole"`
}

// VersionText is a version with what it was made of.
type VersionText struct {
	Version
	Text    string          `json:"text,omitempty" doc:"The file as it was, with marks in place of secrets that stood in it; left out where it was not kept"`
	Changes json.RawMessage `json:"changes,omitempty" doc:"What was changed here on top of it"`
}

// Difference is one value in which two versions differ.
type Difference struct {
	Area string `json:"area" enum:"routing,callers,process" doc:"Where requests go; who may ask for how much; or the process itself, most of which takes a restart"`
	Path string `json:"path" doc:"Of the value; items of a list by their name where they have one"`
	Was  string `json:"was,omitempty" doc:"Left out where there was none"`
	Now  string `json:"now,omitempty" doc:"Left out where there is none any more"`
}

// Comparison is in what two versions differ.
type Comparison struct {
	From        string       `json:"from" doc:"Hash"`
	To          string       `json:"to" doc:"Hash"`
	Differences []Difference `json:"differences" doc:"By what they mean: comments, layout, order where it means nothing and secrets are not compared"`
}

// By says who changes something and why.
type By struct {
	Author string `json:"author,omitempty" maxLength:"128" doc:"Who; the name of the admin token if left out"`
	Reason string `json:"reason" maxLength:"1024" minLength:"1" doc:"Why"`
}

// Change is who changes something and why, whether for real or not.
type Change struct {
	Author, Reason string
	Dry            bool
}

// Reload is who has the configuration file read again.
type Reload struct {
	Author, Reason string
	Follow         bool // put what the file says in force although something else holds
}

// Changed is what a change put in force.
type Changed struct {
	Version     Version      `json:"version" doc:"The new one"`
	Before      string       `json:"before" doc:"Hash of the one before"`
	Differences []Difference `json:"differences"`
	Warnings    []string     `json:"warnings,omitempty" doc:"What is valid but looks wrong"`
	OffFile     string       `json:"off_file,omitempty" doc:"Why the file on disk is not what is in force; left out where it is"`
	DryRun      bool         `json:"dry_run,omitempty" doc:"Nothing has changed"`
}

type (
	versionsIn struct {
		Before int64 `query:"before" minimum:"0" doc:"Only versions with a smaller number; 0 is all"`
		Limit  int   `query:"limit" minimum:"0" maximum:"500" doc:"Most versions; 0: 50"`
	}
	versionsOut struct{ Body VersionList }
	versionIn   struct {
		Version string `path:"version" maxLength:"64" doc:"Number, at least six digits of the hash, current or previous"`
	}
	versionOut struct{ Body VersionText }
	compareIn  struct {
		From string `query:"from" maxLength:"64" doc:"Number, digits of the hash, current, previous, or file for what the file says now; previous if left out"`
		To   string `query:"to" maxLength:"64" doc:"Likewise; current if left out"`
	}
	compareOut struct{ Body Comparison }
	rollbackIn struct {
		Mutation
		Body struct {
			Version string `json:"version,omitempty" maxLength:"64" doc:"Number or digits of the hash; the one before the one in force if left out"`
			By
		}
	}
	changedOut struct{ Body Changed }
	dryRunIn   struct{ Body DryRunQuery }
	dryRunOut  struct{ Body DryRun }
)

// DryRunQuery asks what would have become of recent requests.
type DryRunQuery struct {
	Version string `json:"version,omitempty" maxLength:"64" doc:"Number, digits of the hash, previous, or file for what the file says now"`
	Text    string `json:"text,omitempty" doc:"In place of a version: the text of a configuration file"`
	Since   string `json:"since,omitempty" maxLength:"32" doc:"How far back, a duration; 1h if left out"`
	Limit   int    `json:"limit,omitempty" minimum:"0" maximum:"10000" doc:"Most requests, the newest; 0: 1000"`
}

// DryRun is what would have become of them.
type DryRun struct {
	From  string    `json:"from" doc:"Hash of the version in force"`
	To    string    `json:"to" doc:"Hash of the other"`
	Since time.Time `json:"since"`
	More  bool      `json:"more,omitempty" doc:"There are older requests since then, beyond the limit"`
	dryrun.Report
}

// versionRows is the most versions where nothing else is asked for.
const versionRows = 50

func (a *API) registerVersions(api huma.API) {
	r := &a.o.Routing
	if r.Versions == nil {
		return
	}
	tags := []string{"routing"}
	register(a, api, huma.Operation{OperationID: "list-versions", Method: http.MethodGet, Path: "/admin/v1/versions", Summary: "What has been in force, newest first", Tags: tags},
		func(ctx context.Context, in *versionsIn) (*versionsOut, error) {
			list, err := r.Versions(ctx, in.Before, cmp.Or(in.Limit, versionRows))
			return &versionsOut{list}, err
		})
	register(a, api, huma.Operation{OperationID: "get-version", Method: http.MethodGet, Path: "/admin/v1/versions/{version}", Summary: "One version, with its text", Tags: tags, Errors: []int{404}},
		func(ctx context.Context, in *versionIn) (*versionOut, error) {
			v, err := r.Version(ctx, in.Version)
			return &versionOut{v}, err
		})
	register(a, api, huma.Operation{OperationID: "compare-versions", Method: http.MethodGet, Path: "/admin/v1/versions/diff", Summary: "In what two versions differ, by what they mean", Tags: tags, Errors: []int{404, 409}},
		func(ctx context.Context, in *compareIn) (*compareOut, error) {
			c, err := r.Compare(ctx, in.From, in.To)
			return &compareOut{c}, a.refusedVersion(err)
		})
	register(a, api, huma.Operation{
		OperationID: "rollback", Method: http.MethodPost, Path: "/admin/v1/versions/rollback", Tags: tags, Errors: []int{404, 409},
		Summary: "Put an earlier version in force again, whole; it holds until the configuration file is changed",
	}, a.rollback)
	if r.DryRun != nil {
		register(a, api, huma.Operation{
			OperationID: "dry-run-version", Method: http.MethodPost, Path: "/admin/v1/versions/dry-run", Tags: tags, Errors: []int{404, 409},
			Summary: "What would have become of recent requests under another version",
		}, func(ctx context.Context, in *dryRunIn) (*dryRunOut, error) {
			out, err := r.DryRun(ctx, in.Body)
			return &dryRunOut{out}, a.refusedVersion(err)
		})
	}
}

func (a *API) rollback(ctx context.Context, in *rollbackIn) (*changedOut, error) {
	by, err := a.by(ctx, &in.Body.By, in.DryRun)
	if err != nil {
		return nil, err
	}
	out, err := a.o.Routing.Rollback(ctx, in.Body.Version, by)
	return a.answerChange(ctx, "rolled back", out, err)
}

// answerChange logs a change and answers it.
func (a *API) answerChange(ctx context.Context, what string, out Changed, err error) (*changedOut, error) {
	if err != nil {
		return nil, a.refusedVersion(err)
	}
	if !out.DryRun {
		a.o.Log.LogAttrs(ctx, slog.LevelInfo, what, slog.String("version", out.Version.Hash), slog.Int64("number", out.Version.Number), slog.String("by", operatorOf(ctx).ID))
	}
	return &changedOut{out}, nil
}

// refusedVersion shows what is wrong with a configuration that was asked for: its text
// is the operator's own.
func (a *API) refusedVersion(err error) error {
	if many, ok := errors.AsType[Problems](err); ok {
		p := problemOf(&sluice.Error{
			Kind: sluice.KindInvalid, Reason: sluice.InvalidRequest,
			Msg: "the configuration that this would make is not valid, and nothing has changed", Hint: "see the single mistakes",
		})
		all := many.Details()
		p.Errors = all[:min(len(all), maxReloadProblems)]
		return p
	}
	return err
}

// by is who makes a change: whom the request names, else whose token it came with.
func (a *API) by(ctx context.Context, by *By, dry bool) (Change, error) {
	author, reason, err := a.author(ctx, by.Author, by.Reason)
	if err == nil && reason == "" {
		err = hinted(sluice.Invalid("reason", "is empty"), "say why, for whoever reads the history")
	}
	return Change{Author: author, Reason: reason, Dry: dry}, err
}

// author checks who changes something and why; without a name it is the token's.
func (a *API) author(ctx context.Context, author, reason string) (string, string, error) {
	author, err := versions.Word("author", author, versions.MaxAuthor)
	if err != nil {
		return "", "", err
	}
	if author == "" {
		t := operatorOf(ctx)
		author = cmp.Or(t.Name, t.ID)
	}
	reason, err = versions.Word("reason", reason, versions.MaxReason)
	return author, reason, err
}
