package embedded

import "context"

// OpenBus starts a server for requests beside a log that lies elsewhere: without a log, a folder and a connect.json,
// and with the same permissions as [Open] gives to whoever connects without a name. Of the options only Host, Port,
// StrictPort, MaxConns, Requesters, Logger and Name count.
func OpenBus(ctx context.Context, o Options) (*Engine, error) {
	o = Options{Host: o.Host, Port: o.Port, StrictPort: o.StrictPort, MaxConns: o.MaxConns, Requesters: o.Requesters,
		Logger: o.Logger, Name: o.Name, bare: true}
	if err := o.complete(); err != nil {
		return nil, err
	}
	e := &Engine{o: o}
	if err := e.start(ctx); err != nil {
		_ = e.Close()
		if e.lostPort() {
			return OpenBus(ctx, o)
		}
		return nil, err
	}
	return e, nil
}
