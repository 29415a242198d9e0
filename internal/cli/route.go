package cli

type routeCmd struct {
	Shadow routeShadowCmd `cmd:"" help:"Compare what shadows came to with the requests that they are copies of."`
}
