package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/config"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitDenied      = 4
	exitConflict    = 5
	exitDegraded    = 6
	exitUnavailable = 7
)

// codedError is an error with its exit code. Its message has been told already
// if it is empty.
type codedError struct {
	code int
	msg  string
	hint string
}

func (e *codedError) Error() string { return e.msg }

// exitCode finds the code of an error.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if e, ok := errors.AsType[*codedError](err); ok {
		return e.code
	}
	if _, ok := errors.AsType[config.Problems](err); ok {
		return exitUsage
	}
	if p, ok := errors.AsType[*admin.Problem](err); ok {
		return codeOfKind(p.Kind)
	}
	if e, ok := errors.AsType[*sluice.Error](err); ok {
		return codeOfKind(e.Kind.String())
	}
	if errors.Is(err, context.Canceled) {
		return exitFailed
	}
	return exitFailed
}

func codeOfKind(kind string) int {
	switch kind {
	case sluice.KindInvalid.String(), sluice.KindTooLarge.String():
		return exitUsage
	case sluice.KindNotFound.String():
		return exitNotFound
	case sluice.KindUnauthenticated.String(), sluice.KindForbidden.String():
		return exitDenied
	case sluice.KindConflict.String():
		return exitConflict
	case sluice.KindOverloaded.String(), sluice.KindTimeout.String():
		return exitUnavailable
	}
	return exitFailed
}

// printError tells an error: what is wrong, each single mistake, and a hint.
func printError(w io.Writer, err error) {
	if c, ok := errors.AsType[*codedError](err); ok {
		if c.msg != "" {
			sayError(w, c.msg, c.hint)
		}
		return
	}
	if ps, ok := errors.AsType[config.Problems](err); ok {
		fmt.Fprintln(w, plain(ps.Error()))
		return
	}
	if p, ok := errors.AsType[*admin.Problem](err); ok {
		printProblem(w, p)
		return
	}
	if e, ok := errors.AsType[*sluice.Error](err); ok {
		msg := strings.TrimSpace(e.Param + " " + e.Msg)
		if e.Err != nil {
			msg += " (" + e.Err.Error() + ")"
		}
		sayError(w, msg, e.Hint)
		return
	}
	sayError(w, err.Error(), "")
}

func printProblem(w io.Writer, p *admin.Problem) {
	msg := p.Detail
	if p.Param != "" && !strings.HasPrefix(msg, p.Param) {
		msg = p.Param + ": " + msg
	}
	sayError(w, msg, p.Hint)
	if len(p.Errors) == 1 && p.Errors[0].Message == p.Detail {
		return
	}
	for _, d := range p.Errors {
		line := d.Message
		if d.Location != "" {
			line = d.Location + ": " + line
		}
		fmt.Fprintln(w, "  "+strings.ReplaceAll(plain(line), "\n", "\n  "))
	}
}

func sayError(w io.Writer, msg, hint string) {
	fmt.Fprintln(w, "sluice: "+plain(msg))
	if hint != "" {
		fmt.Fprintln(w, "hint: "+plain(hint))
	}
}
