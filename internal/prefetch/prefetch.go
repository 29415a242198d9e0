package prefetch

import "unsafe"

// Of asks for all of *p.
func Of[T any](p *T) { lines(address(p), unsafe.Sizeof(*p)) }

// From asks for so many bytes from p on, more than *p has where what follows it in memory
// is known.
func From[T any](p *T, bytes uintptr) { lines(address(p), bytes) }

// Around asks for so many bytes before p and from p on, where *p is a part of something.
func Around[T any](p *T, before, bytes uintptr) { lines(address(p)-before, before+bytes) }

// address is where *p lies. It is a number, and never becomes a pointer again.
func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }
