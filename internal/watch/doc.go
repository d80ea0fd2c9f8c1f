// Package watch tells how a process is: its health, its metrics, and a [Scope] that knows what the last decisions and
// rounds were worth. What the services do goes in, and pages, alarms and Prometheus read it.
package watch
