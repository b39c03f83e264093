import JSONText
import WireBytes

// Who is there, and the session: log-in, opening, pings, refusals.

extension Learner {
    // MARK: - People

    mutating func findPeople() {
        findPresence()
        let joins = ["join", "enter", "arriv", "came", "memberadd", "useradd", "connected"]
        let leaves = ["leave", "left", "part", "quit", "gone", "went", "memberremove", "disconnect"]
        let membership: [(String, [String], [String])] = [
            ("leave", leaves, ["party"]), ("join", joins, ["phxjoin", "disconnect", "reply"]),
        ]
        for (event, stems, not) in membership {
            let frames = evidence.received(called: stems, but: not).filter { !isExplained($0) && !isReply($0) }
            for (_, same) in Dictionary(grouping: frames, by: { evidence.kind(of: $0) ?? "" }).sorted(by: {
                $0.key < $1.key
            }) {
                let group = LearnedGroup(frames: same)
                var fields = LearnedFields()
                addRoom(group, to: &fields)
                addPerson(group, "user.id", "user.name", to: &fields)
                guard fields.pointers["user.id"] != nil || fields.pointers["user.name"] != nil else { continue }
                addTime(group, to: &fields)
                let when = evidence.conditions(same)
                add([rule(event, when: when, fields, why: "by its name")], when: when, explaining: same)
            }
        }
    }

    /// Whether it answers a frame that the app sent to get in: it is the first that came in after it.
    private func isReply(_ frame: LearnedFrame) -> Bool {
        opening.contains { sent in evidence.received.first { $0.index > sent.index }?.index == frame.index }
    }

    private mutating func findPresence() {
        let states: [String: String] = [
            "online": "online", "active": "online", "available": "online", "here": "online", "away": "away",
            "idle": "away",
            "busy": "away", "dnd": "away", "offline": "offline", "inactive": "offline", "gone": "offline",
        ]
        let frames = evidence.received.filter { frame in
            !isExplained(frame)
                && frame.single.contains {
                    states[$0.value.string?.lowercased() ?? ""] != nil && $0.pointer != evidence.kind
                }
        }
        guard let first = frames.first,
            let state = first.single.first(where: {
                states[$0.value.string?.lowercased() ?? ""] != nil && $0.pointer != evidence.kind
            })
        else { return }
        let same = frames.filter { evidence.kind(of: $0) == evidence.kind(of: first) && $0.value(state.pointer) != nil }
        let group = LearnedGroup(frames: same)
        var fields = LearnedFields()
        addPerson(group, "user.id", "user.name", to: &fields, besides: [state.pointer])
        guard fields.pointers["user.id"] != nil || fields.pointers["user.name"] != nil else { return }
        let words = Set(same.compactMap { $0.text(state.pointer) }).union(["online", "away", "offline"]).sorted()
        let map = words.compactMap { word in states[word.lowercased()].map { JSONValue.Member(word, .string($0)) } }
        fields.set(
            "state", .object([.init("ptr", .string(state.pointer)), .init("map", .object(map))]), "by its words")
        addRoom(group, to: &fields)
        let when = evidence.conditions(same, exists: [state.pointer])
        add(
            [rule("presence", when: when, fields, why: "a word for being there or not, beside a person")], when: when,
            explaining: same)
    }

    // MARK: - Opening

    /// What the app sent before anything was said.
    var opening: [LearnedFrame] {
        let messages = sentMessages().map(\.frame.index)
        let end = messages.first ?? (evidence.sent.first?.index ?? 0) + 4
        let moment = evidence.recording.moments.first { $0.step == .say }?.frame ?? end
        let pings = Set(pings.map(\.index))
        return evidence.sent.filter { $0.index < min(end, moment) && !pings.contains($0.index) && !isAnswer($0) }
            .filter { frame in !frame.single.contains { Words.have($0.value.string ?? "", ["typing", "read", "seen"]) }
            }
    }

    private var pings: [LearnedFrame] {
        evidence.sent.filter { frame in
            frame.json["prefix"]?.string == "2" && frame.json["body"] == nil
                || frame.single.contains { leaf in
                    leaf.value.string.map { Words.pings.contains(Words.plain($0)) } ?? false
                }
        }
    }

    /// A frame that answers a ping of the backend.
    private func isAnswer(_ frame: LearnedFrame) -> Bool {
        frame.json["prefix"]?.string == "3" && frame.json["body"] == nil
            || frame.single.contains { Words.plain($0.value.string ?? "") == "pong" }
    }

    mutating func findSession() {
        findPings()
        let frames = opening
        let login = frames.first { tokenLeaf($0) != nil }
        var answered: LearnedFrame?
        if let login, let leaf = tokenLeaf(login) {
            var maker = maker(for: login)
            let text = leaf.value.string ?? ""
            maker.places[leaf.pointer] =
                text.contains(LearnMark.token)
                ? text.replacing(LearnMark.token, with: "{{access_token}}") : "{{access_token}}"
            send("auth", template(login, maker))
            token = .frame
            reason(
                "encode.auth: the app shows a token in the first frames; the room's auth is { type = \"message\", … }")
            answered = evidence.received.first { $0.index > login.index && !isPing($0) && !isExplained($0) }
        } else if let field = evidence.recording.url.flatMap({ Self.withoutToken($0).field }) {
            token = .query(field)
            reason("auth: the address has a token as \"\(field)\"")
        } else if let header = evidence.recording.header {
            token = .header(header)
            reason(
                header.isCookie
                    ? "auth: the app showed nothing but a cookie, which may be the log-in"
                    : "auth: the app showed a token as \(header.name)")
        }
        let rest = frames.filter { $0.index != login?.index }
        if !rest.isEmpty {
            set("on_open", .array(rest.map { frame in template(frame, maker(for: frame)) }))
            reason("on_open: what the app sent before anything was said")
        }
        let last = rest.last ?? login
        let ready = last.flatMap { last in
            evidence.received.first { $0.index > last.index && !isPing($0) && !isExplained($0) }
        }
        if let login, let answered { findLogin(answered, to: login) }
        if let ready, ready.index != answered?.index || answered == nil, !rest.isEmpty {
            let all = evidence.received.filter {
                evidence.kind(of: $0) == evidence.kind(of: ready) && evidence.kind != nil || $0.index == ready.index
            }
            let when = evidence.conditions(all.filter { !isExplained($0) })
            // Without a condition any frame would do.
            if when.object?.isEmpty == false {
                set("ready_when", when)
                reason("ready_when: the first frame that came after the last one of the opening")
            }
            let alone = evidence.conditions([ready])
            if alone.object?.isEmpty == false { findWelcome(ready, alone) }
        } else if answered == nil, last == nil, let hello = evidence.received.first, !isExplained(hello) {
            findWelcome(hello, evidence.conditions([hello]))
        }
        let end = sentMessages().first?.frame.index ?? .max
        let hello = evidence.received.first {
            $0.index < end && !isExplained($0) && !isPing($0) && !identity($0).members.isEmpty
        }
        if !isSelfFound, let hello {
            let when = evidence.conditions([hello])
            if when.object?.isEmpty == false { findWelcome(hello, when) }
        }
        findErrors()
    }

    private func tokenLeaf(_ frame: LearnedFrame) -> Leaf? {
        frame.single.first { leaf in
            guard let text = leaf.value.string, text.utf8.count >= 6, leaf.pointer != "/prefix" else { return false }
            return Words.isToken(leaf.key, text)
        }
    }

    /// The frame that answers the log-in, and what else it says.
    private mutating func findLogin(_ frame: LearnedFrame, to login: LearnedFrame) {
        var fields = LearnedFields()
        fields.set("state", .object([.init("const", .string("ok"))]), "")
        var when = evidence.conditions([frame])
        let others = evidence.received.filter { $0.index != frame.index }
        func isAlone(_ when: JSONValue) -> Bool {
            !others.contains { other in when.object?.allSatisfy { other.value($0.key) == $0.value } ?? true }
        }
        // Answers to all requests look alike but for the number of the request.
        if !isAlone(when), let members = when.object {
            let numbers = login.single.compactMap(\.value.integer)
            let number = frame.single.first { leaf in leaf.value.integer.map { numbers.contains($0) } ?? false }
            if let number { when = .object(members + [.init(number.pointer, number.value)]) }
        }
        let good = ["ok", "success", "succeeded", "accepted", "authenticated", "true"]
        let status = frame.single.first { leaf in
            ["status", "ok", "success", "result", "state"].contains(leaf.key) && leaf.pointer != evidence.kind
                && (leaf.value == .bool(true) || good.contains(ASCII.lowercased(leaf.value.string ?? "")))
        }
        if let status, let members = when.object, !members.isEmpty, when[status.pointer] == nil {
            var refused = LearnedFields()
            refused.set("state", .object([.init("const", .string("failed"))]), "")
            add(
                [
                    rule(
                        "auth", when: when, refused,
                        why: "a guess: any other answer, since the one that was recorded says that all is well")
                ],
                when: when, explaining: [])
            when = .object(members + [.init(status.pointer, status.value)])
        }
        // Without a condition any frame would be the answer.
        guard when.object?.isEmpty == false else {
            return reason("auth: nothing tells the answer to the log-in from other frames; write its rule")
        }
        findWelcome(
            frame, when,
            first: [rule("auth", when: when, fields, isFollowed: true, why: "it answered the frame with the token")])
    }

    /// What the first frame says besides: who we are, the topic, who is there.
    private mutating func findWelcome(_ frame: LearnedFrame, _ when: JSONValue, first: [JSONValue] = []) {
        var rules = first
        let identity = identity(frame)
        if !identity.members.isEmpty {
            isSelfFound = true
            rules.append(rule("self", when: when, identity, isFollowed: true, why: "it says who the app is"))
        }
        if let topic = frame.single.first(where: {
            ["topic", "subject", "purpose"].contains($0.key) && $0.value.string != room
        }) {
            var fields = LearnedFields()
            fields.set("text", topic.pointer, "by its name")
            rules.append(rule("topic", when: when, fields, isFollowed: true, why: "the room's topic"))
        }
        let members = frame.leaves.first { leaf in
            leaf.list != nil
                && leaf.names.contains {
                    ["members", "users", "people", "participants", "online", "here", "presences"].contains($0)
                }
        }
        if let list = members?.list {
            var fields = LearnedFields()
            let inner = frame.leaves.filter { $0.list == list && $0.element == 0 }
            if let id = LearnedGroup.best(inner, Words.personIDs + ["id"]) { fields.set("user.id", id.inner, "") }
            if let name = LearnedGroup.best(inner, Words.names) { fields.set("user.name", name.inner, "") }
            if fields.members.isEmpty, inner.first?.inner.isEmpty == true { fields.set("user.name", "", "") }
            if !fields.members.isEmpty {
                rules.append(
                    rule("join", when: when, fields, each: list, isFollowed: true, why: "everybody who is there"))
            }
        }
        let history = historyRule(frame, when)
        if let history { rules.append(history) }
        guard !rules.isEmpty else { return }
        // The last of them ends it.
        if let last = rules.last?.object {
            rules[rules.count - 1] = .object(last.filter { $0.key != "then" })
        }
        add(rules, when: when, explaining: [frame])
    }

    /// Where a frame says who the app is: by the name of the place, by what its own messages have, or since it greets.
    private func identity(_ frame: LearnedFrame) -> LearnedFields {
        var fields = LearnedFields()
        let named = frame.single.filter { leaf in
            leaf.names.contains { ["you", "self", "me", "myself", "account"].contains($0) }
        }
        let isGreeting = evidence.words(of: frame).contains { Words.have($0, ["hello", "welcome", "greet", "whoami"]) }
        let greeted = isGreeting ? LearnedGroup(frames: [frame]).person(besides: []) : nil
        let id =
            LearnedGroup.best(named, Words.personIDs + ["you", "self", "me"])
            ?? frame.single.first { own.ids.contains($0.text ?? "") } ?? greeted?.id
        let name =
            LearnedGroup.best(named, Words.names) ?? frame.single.first { own.names.contains($0.text ?? "") }
            ?? greeted?.name
        // What senders have as their name says nothing as an id: no message has such a one.
        let isID = id.map { own.ids.contains($0.text ?? "") || !own.names.contains($0.text ?? "") } ?? false
        if let id { fields.set(isID ? "user.id" : "user.name", id.pointer, "") }
        if isID || id == nil, let name, name.pointer != id?.pointer { fields.set("user.name", name.pointer, "") }
        return fields
    }

    // MARK: - Pings

    private func isPing(_ frame: LearnedFrame) -> Bool {
        frame.json["prefix"]?.string == "2" && frame.json["body"] == nil
            || frame.single.contains { (Words.pings + ["pong"]).contains(Words.plain($0.value.string ?? "")) }
    }

    private mutating func findPings() {
        let pings = pings
        if let first = pings.first, !evidence.isPrefixed || first.json["body"] != nil {
            let times = pings.compactMap(\.at)
            let pauses = zip(times.dropFirst(), times).map { $0 - $1 }.sorted()
            let every = pauses.isEmpty ? 25 : min(max(pauses[pauses.count / 2] / 1000, 5), 300)
            var maker = maker(for: first)
            if let ref = LearnedGroup.best(first.single.filter { $0.label != roomLabel }, Words.nonces) {
                maker.places[ref.pointer] = "{{ref}}"
            }
            set("ping", .object([.init("every", .integer(every)), .init("frame", template(first, maker))]))
            reason(
                "ping: the app sends it by itself" + (pauses.isEmpty ? "; how often is a guess" : ", about that often"))
        }
        // The answer has the ping's own topic, which nothing else has.
        let topics = pings.flatMap(\.single).filter { leaf in
            leaf.value.string.map {
                Words.isWord($0) && $0.utf8.count > 3 && $0 != room && !Words.pings.contains(Words.plain($0))
            } ?? false
                && leaf.pointer != evidence.kind
        }
        let answers = evidence.received.filter { frame in
            !isExplained(frame) && topics.contains { frame.value($0.pointer) == $0.value }
        }
        if let topic = topics.first(where: { leaf in answers.contains { $0.value(leaf.pointer) == leaf.value } }),
            !answers.isEmpty
        {
            let when = JSONValue.object([.init(topic.pointer, topic.value)])
            add(
                [rule("pong", when: when, LearnedFields(), why: "it answers the app's ping")], when: when,
                explaining: answers)
        }
        let theirs = evidence.received.filter { !isExplained($0) && isPing($0) }
        for (_, same) in Dictionary(grouping: theirs, by: { evidence.kind(of: $0) ?? "" }).sorted(by: {
            $0.key < $1.key
        }) {
            guard let frame = same.first else { continue }
            let when = evidence.conditions(same)
            let isPong =
                frame.single.contains { Words.plain($0.value.string ?? "") == "pong" }
                || !pings.isEmpty && !evidence.isPrefixed
            if isPong {
                add(
                    [rule("pong", when: when, LearnedFields(), why: "it answers the app's ping")], when: when,
                    explaining: same)
                continue
            }
            if let answer = evidence.sent.first(where: {
                $0.index > frame.index && $0.index <= frame.index + 2 && isAnswer($0)
            }) {
                set(
                    "reply",
                    .array([.object([.init("when", when), .init("send", template(answer, maker(for: answer)))])]))
                reason("reply: the app answers such a frame at once")
            }
            add([rule("ignore", when: when, LearnedFields(), why: "the backend's ping")], when: when, explaining: same)
        }
    }

    // MARK: - Refusals

    private mutating func findErrors() {
        let frames = evidence.received.filter { !isExplained($0) && isComplaint($0) }
        for (_, same) in Dictionary(grouping: frames, by: { evidence.kind(of: $0) ?? "" }).sorted(by: {
            $0.key < $1.key
        }) {
            // What says of all of them that they failed is neither a code nor a text.
            let state = same.first.flatMap { complaintPlace($0) }.flatMap { place in
                !place.isError && same.allSatisfy { $0.value(place.pointer) == place.value } ? place : nil
            }
            let leaves = LearnedGroup(frames: same).any.filter {
                $0.pointer != evidence.kind && $0.pointer != state?.pointer
            }
            var fields = LearnedFields()
            if let code = LearnedGroup.best(leaves, ["code", "reason", "errorcode", "status", "why"]) {
                fields.set("code", code.pointer, "")
            }
            let words = leaves.filter { $0.value.string != nil && !fields.used.contains($0.pointer) }
            if let text = LearnedGroup.best(
                words, ["message", "text", "detail", "error", "description", "msg", "reason"])
            {
                fields.set("text", text.pointer, "")
            }
            if let ref = LearnedGroup.best(leaves.filter { $0.label != roomLabel }, Words.nonces) {
                fields.set("ref", ref.pointer, "of the message that was refused")
            }
            if let retry = LearnedGroup.best(leaves, ["retryafter", "retry", "retryin", "wait"]) {
                fields.set("retry", retry.pointer, "seconds")
            }
            if let retry = LearnedGroup.best(leaves, ["retryafterms", "retryms"]) {
                fields.set("retry_ms", retry.pointer, "")
            }
            guard fields.pointers["code"] != nil || fields.pointers["text"] != nil else { continue }
            let when: JSONValue
            if let state {
                let others = (evidence.conditions(same).object ?? []).filter { $0.key != state.pointer }
                when = .object(others + [.init(state.pointer, state.value)])
            } else {
                let places = ["text", "code"].compactMap { fields.pointers[$0] }
                when = evidence.conditions(
                    same, exists: places.filter { place in same.allSatisfy { $0.value(place) != nil } })
            }
            guard when.object?.isEmpty == false else { continue }
            add([rule("error", when: when, fields, why: "by its name")], when: when, explaining: same)
        }
    }
}
