package actors

import (
	"fmt"
	"time"

	"github.com/partita-go/partita/messages"
)

// Standing returns where the command processor's status stands.
func (p *CommandProcessor) Standing() *Standing { return &p.standing }

func (p *CommandProcessor) become(state messages.ActorState, details string) {
	p.standing.become(state, details)
}

// Interrupted publishes that the actor has failed, and waits to be restarted or has ended.
func (p *CommandProcessor) Interrupted(f Failure) { p.standing.interrupted(f) }

// started publishes that the actor takes commands, anew if it was restarted.
func (p *CommandProcessor) started() {
	p.standing.change(func(s *messages.ActorStatus) {
		if s.State != messages.StateInitializing {
			return // it is being stopped
		}
		if s.Err != nil {
			s.Restarts++
		}
		s.State, s.Details, s.Err = messages.StateNormal, "", nil
	})
}

// hasEnded publishes that the actor has ended. One that was not restarted stands as it has failed, until somebody stops it.
func (p *CommandProcessor) hasEnded() {
	p.dog.close()
	if p.standing.Status().State != messages.StateFailed {
		p.become(messages.StateTerminated, "")
	}
}

// begin notes that a command is under way, end that it has ended.
func (p *CommandProcessor) begin(ws messages.WSID) {
	p.workspace.Store(uint64(ws))
	p.dog.begin(p.config.AlarmAfter)
}

func (p *CommandProcessor) end() { p.dog.end() }

// bark publishes that the command under way does not end, or has ended at last.
func (p *CommandProcessor) bark(lasts time.Duration) {
	p.standing.change(func(s *messages.ActorStatus) {
		switch {
		case lasts > 0:
			s.Details = fmt.Sprintf("a command of workspace %d has not ended for %s", p.workspace.Load(), seconds(lasts))
			if s.State == messages.StateNormal {
				s.State = messages.StateAlarming
			}
		case s.State == messages.StateAlarming:
			s.State, s.Details = messages.StateNormal, ""
		}
	})
}
