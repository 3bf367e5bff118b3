package hookyard

import "context"

// Place is what a host may say with each event.
type Place struct {
	// The run that the event is part of.
	Run string
	// The conversation that the run is part of; by default the run's id.
	Session string
	// The workspace whose hooks are asked; by default the one that contains Cwd, or the only one.
	Workspace string
	// The host's working directory.
	Cwd string
	// An id of this event: if it is sent again, no hook runs twice.
	ID string
	// Bool(false): an event that only reports something is answered at once, and its hooks run on.
	Wait *bool
}

// Bool is a pointer to a boolean, for Wait.
func Bool(value bool) *bool { return &value }

// ToolCall is one call of a tool.
type ToolCall struct {
	// The tool's name.
	Name string
	// Its input: anything that has a JSON form. A json.RawMessage is sent as it is.
	Input any
	// An id of the call: if its events are sent again, no hook runs twice.
	ID string
}

// ModelCall is one call of a model.
type ModelCall struct {
	// The model.
	Model string
	// What it is asked.
	Request any
	// What it answered, after the call.
	Response any
}

func (p Place) event(kind EventKind) Event {
	session := p.Session
	if session == "" {
		session = p.Run
	}
	return Event{Event: kind, RunID: p.Run, SessionID: session, WorkspaceID: p.Workspace, Cwd: p.Cwd, EventID: p.ID, Wait: p.Wait}
}

func (t ToolCall) event(place Place, kind EventKind) Event {
	event := place.event(kind)
	event.ToolName, event.ToolInput, event.ToolCallID = t.Name, t.Input, t.ID
	return event
}

// SessionStarted reports that a session began; source says from where, such as startup or resume.
func (c *Client) SessionStarted(ctx context.Context, place Place, source string) (Outcome, error) {
	event := place.event(KindSessionStarted)
	event.Source = source
	return c.Dispatch(ctx, event)
}

// SessionEnded reports that a session ended, and with it its run.
func (c *Client) SessionEnded(ctx context.Context, place Place, reason string) (Outcome, error) {
	event := place.event(KindSessionEnded)
	event.Reason = reason
	return c.Dispatch(ctx, event)
}

// PromptSubmitted reports that a person or program sent a prompt.
func (c *Client) PromptSubmitted(ctx context.Context, place Place, prompt any) (Outcome, error) {
	event := place.event(KindPromptSubmitted)
	event.Prompt = prompt
	return c.Dispatch(ctx, event)
}

// BeforeContextCompact reports that the context is about to be compacted; trigger is manual or auto.
func (c *Client) BeforeContextCompact(ctx context.Context, place Place, trigger string, content any) (Outcome, error) {
	event := place.event(KindBeforeContextCompact)
	event.Trigger, event.Context = trigger, content
	return c.Dispatch(ctx, event)
}

// AfterContextCompact reports that the context was compacted.
func (c *Client) AfterContextCompact(ctx context.Context, place Place, trigger string, content any) (Outcome, error) {
	event := place.event(KindAfterContextCompact)
	event.Trigger, event.Context = trigger, content
	return c.Dispatch(ctx, event)
}

// BeforeContextBuild reports that the context is about to be built from these parts.
func (c *Client) BeforeContextBuild(ctx context.Context, place Place, content any) (Outcome, error) {
	event := place.event(KindBeforeContextBuild)
	event.Context = content
	return c.Dispatch(ctx, event)
}

// AfterContextBuild reports that the context was built.
func (c *Client) AfterContextBuild(ctx context.Context, place Place, content any) (Outcome, error) {
	event := place.event(KindAfterContextBuild)
	event.Context = content
	return c.Dispatch(ctx, event)
}

// BeforeModelCall reports that a model is about to be called.
func (c *Client) BeforeModelCall(ctx context.Context, place Place, call ModelCall) (Outcome, error) {
	event := place.event(KindBeforeModelCall)
	event.ModelRef, event.ModelRequest = call.Model, call.Request
	return c.Dispatch(ctx, event)
}

// AfterModelCall reports that a model answered.
func (c *Client) AfterModelCall(ctx context.Context, place Place, call ModelCall) (Outcome, error) {
	event := place.event(KindAfterModelCall)
	event.ModelRef, event.ModelRequest, event.ModelResponse = call.Model, call.Request, call.Response
	return c.Dispatch(ctx, event)
}

// BeforeToolSelection reports that the tools that a model may choose from are about to be settled.
func (c *Client) BeforeToolSelection(ctx context.Context, place Place, tools any) (Outcome, error) {
	event := place.event(KindBeforeToolSelection)
	event.ToolConfig = tools
	return c.Dispatch(ctx, event)
}

// BeforeToolDispatch reports that a tool is about to run; run it with the payload of the outcome.
func (c *Client) BeforeToolDispatch(ctx context.Context, place Place, tool ToolCall) (Outcome, error) {
	return c.Dispatch(ctx, tool.event(place, KindBeforeToolDispatch))
}

// AfterToolDispatch reports that a tool ran; give the model the payload of the outcome.
func (c *Client) AfterToolDispatch(ctx context.Context, place Place, tool ToolCall, output any) (Outcome, error) {
	event := tool.event(place, KindAfterToolDispatch)
	event.ToolOutput = output
	return c.Dispatch(ctx, event)
}

// ToolFailed reports that a tool failed; message is for people and models to read.
func (c *Client) ToolFailed(ctx context.Context, place Place, tool ToolCall, message string) (Outcome, error) {
	event := tool.event(place, KindToolFailed)
	if message != "" {
		event.Extra = map[string]any{"error": message}
	}
	return c.Dispatch(ctx, event)
}

// PermissionRequested reports that the host is about to ask a person whether a tool may run; hooks may answer in the
// person's place.
func (c *Client) PermissionRequested(ctx context.Context, place Place, tool ToolCall) (Outcome, error) {
	return c.Dispatch(ctx, tool.event(place, KindPermissionRequested))
}

// Notification reports that the host notifies a person.
func (c *Client) Notification(ctx context.Context, place Place, kind, message string) (Outcome, error) {
	event := place.event(KindNotification)
	event.NotificationType, event.Message = kind, message
	return c.Dispatch(ctx, event)
}

// AgentStopping reports that the agent is about to stop. A block means: keep working.
func (c *Client) AgentStopping(ctx context.Context, place Place) (Outcome, error) {
	return c.Dispatch(ctx, place.event(KindAgentStopping))
}

// SubagentStarted reports that a subagent began; agent is its type.
func (c *Client) SubagentStarted(ctx context.Context, place Place, agent string) (Outcome, error) {
	event := place.event(KindSubagentStarted)
	event.AgentType = agent
	return c.Dispatch(ctx, event)
}

// SubagentStopping reports that a subagent is about to stop. A block means: keep working.
func (c *Client) SubagentStopping(ctx context.Context, place Place, agent string) (Outcome, error) {
	event := place.event(KindSubagentStopping)
	event.AgentType = agent
	return c.Dispatch(ctx, event)
}

// RunCompleted reports that the run completed; trigger says what had started it, such as user.
func (c *Client) RunCompleted(ctx context.Context, place Place, trigger string) (Outcome, error) {
	event := place.event(KindRunCompleted)
	event.TriggerType, event.RunStatus = trigger, "completed"
	return c.Dispatch(ctx, event)
}

// RunFailed reports that the run failed.
func (c *Client) RunFailed(ctx context.Context, place Place, trigger string) (Outcome, error) {
	event := place.event(KindRunFailed)
	event.TriggerType, event.RunStatus = trigger, "failed"
	return c.Dispatch(ctx, event)
}

// HostEvent reports that something happened that only this host has a name for.
func (c *Client) HostEvent(ctx context.Context, place Place, name string) (Outcome, error) {
	event := place.event(KindHostEvent)
	event.HostEvent = name
	return c.Dispatch(ctx, event)
}
