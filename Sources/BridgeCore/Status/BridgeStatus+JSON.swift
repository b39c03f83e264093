import ChatModel
import IRCProtocol
import IRCServer
import JSONText
import Upstream
import WireBytes

// The status as JSON: times as in IRC's server-time, durations in seconds, and null for what is not known.

extension BridgeStatus {
    /// One object and a newline.
    public var json: [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        appendMembers(to: &writer)
        writer.endObject()
        return writer.finish() + [UInt8(ascii: "\n")]
    }

    /// The members of the object, for documents that have more of them.
    package func appendMembers(to writer: inout JSONWriter) {
        writer.key("server")
        writer.string(serverName)
        writer.key("network")
        writer.string(network)
        writer.key("version")
        writer.string(version)
        writer.key("at")
        writer.time(at)
        writer.key("started_at")
        writer.time(startedAt)
        writer.key("running")
        writer.bool(isRunning)
        writer.key("storage")
        if case .failing(let reason) = storage { writer.string(reason) } else { writer.string("sound") }
        writer.key("rooms")
        writer.beginArray()
        for room in rooms { room.append(to: &writer) }
        writer.endArray()
        writer.key("clients")
        writer.beginArray()
        for client in clients { client.append(to: &writer) }
        writer.endArray()
    }
}

extension RoomStatus {
    fileprivate func append(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("name")
        writer.string(state.name)
        writer.key("channel")
        writer.string(channel)
        writer.key("host")
        writer.string(host)
        writer.key("state")
        writer.string(state.link.rawValue)
        writer.key("since")
        writer.time(since)
        writer.key("reason")
        writer.text(state.reason)
        writer.key("failures")
        writer.integer(Int64(state.failures))
        writer.key("retry_in")
        writer.seconds(retryIn)
        writer.key("on_demand")
        writer.bool(state.isOnDemand)
        writer.key("disabled")
        writer.bool(state.isDisabled)
        writer.key("round_trip")
        writer.seconds(roundTrip)
        for (key, number) in [
            ("upstream_users", upstreamUsers), ("clients", clients), ("messages_in", messagesIn),
            ("messages_out", messagesOut), ("undecodable", undecodable), ("queued", queued),
            ("queue_limit", queueLimit), ("unconfirmed", unconfirmed),
        ] {
            writer.key(text: key)
            writer.integer(Int64(number))
        }
        writer.key("oldest_queued_for")
        writer.seconds(oldestQueuedFor)
        writer.key("oldest_unconfirmed_for")
        writer.seconds(oldestUnconfirmedFor)
        writer.key("last_message_at")
        writer.time(lastMessageAt)
        writer.key("token_ends_at")
        writer.time(tokenEndsAt)
        writer.endObject()
    }
}

extension ClientStatus {
    fileprivate func append(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("id")
        writer.integer(Int64(clamping: id))
        writer.key("nick")
        writer.text(nick)
        writer.key("account")
        writer.text(account)
        writer.key("address")
        writer.string(address)
        writer.key("transport")
        writer.string(transport.rawValue)
        writer.key("listener")
        writer.string(listener)
        writer.key("registered")
        writer.bool(isRegistered)
        writer.key("connected_at")
        writer.time(connectedAt)
        writer.key("idle_since")
        writer.time(idleSince)
        writer.key("rooms")
        writer.beginArray()
        for room in rooms { writer.string(room) }
        writer.endArray()
        writer.key("paused")
        writer.bool(isPaused)
        writer.endObject()
    }
}

extension JSONWriter {
    package mutating func time(_ at: ChatTimestamp?) {
        if let at { string(IRCServerTime.format(milliseconds: at.milliseconds)) } else { null() }
    }

    package mutating func text(_ text: String?) { if let text { string(text) } else { null() } }

    /// Seconds, to the microsecond.
    package mutating func seconds(_ duration: Duration?) {
        if let duration { double(Double(duration.wholeNanoseconds / 1000) / 1_000_000) } else { null() }
    }
}
