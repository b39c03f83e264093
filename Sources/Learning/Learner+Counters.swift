import JSONText

// Numbers that only count, which are no ids.

extension Learner {
    enum Counter {
        /// Of the frames of a connection: other kinds of frames are counted with the messages.
        case ofConnection
        /// Of messages, from the first one on: ids of a new backend, or a counter that begins anew.
        case ofMessages
    }

    /// Places of messages whose numbers go up by one from frame to frame.
    func counters(_ group: LearnedGroup) -> [String: Counter] {
        var counters: [String: Counter] = [:]
        for leaf in group.common {
            let frames = evidence.received.filter { $0.value(leaf.pointer) != nil }
            let numbers = frames.compactMap { $0.value(leaf.pointer)?.integer }
            guard numbers.count > 1, numbers.count == frames.count, let first = numbers.first,
                zip(numbers.dropFirst(), numbers).allSatisfy({ $0.subtractingReportingOverflow($1) == (1, false) })
            else { continue }
            if isOfOtherKinds(leaf.pointer, group) {
                counters[leaf.pointer] = .ofConnection
            } else if first <= 1 {
                counters[leaf.pointer] = .ofMessages
            }
        }
        return counters
    }

    /// Doubts about the ids that a description reads.
    ///
    /// - Parameter ids: The ids of messages that one rule read, by the number of the frame.
    /// - Returns: The place and what it is; nil: there is no doubt.
    public static func doubt(ids: [Int: String], in recording: Recording) -> String? {
        let learner = Learner(recording)
        let group = LearnedGroup(frames: learner.evidence.received.filter { ids[$0.index] != nil })
        let counters = learner.counters(group)
        let place = group.common.first { leaf in
            counters[leaf.pointer] != nil && group.frames.allSatisfy { $0.text(leaf.pointer) == ids[$0.index] }
        }
        guard let place, let counter = counters[place.pointer] else { return nil }
        return doubt(place.pointer, counter)
    }

    /// Where answers to sent messages have ids of messages, if a description reads ids there that no message has.
    ///
    /// - Parameters:
    ///   - receipts: The ids that one rule read of what confirms messages, by the number of the frame.
    ///   - messages: The ids of all messages that were read.
    /// - Returns: The pointer; nil: there is no doubt about what it reads.
    public static func messageIDs(
        receipts: [Int: [String]], messages: Set<String>, in recording: Recording
    ) -> String? {
        guard !receipts.values.joined().contains(where: messages.contains) else { return nil }
        let learner = Learner(recording)
        let group = LearnedGroup(frames: learner.evidence.received.filter { receipts[$0.index] != nil })
        let counters = learner.counters(group)
        let place = group.any.first { leaf in
            let found = group.frames.compactMap { $0.text(leaf.pointer) }.filter(messages.contains)
            // One of many may be equal by chance.
            return found.count * 2 > group.frames.count && Set(found).count == found.count
                && counters[leaf.pointer] != .ofConnection
        }
        return place?.pointer
    }

    static func doubt(_ place: String, _ counter: Counter) -> String {
        switch counter {
        case .ofConnection:
            "\(place) counts all frames by one, so it is no id of messages: once it begins anew, with another connection, "
                + "messages are lost as duplicates; read another place, or none"
        case .ofMessages:
            "\(place) counts by one from the first message on; if it begins anew with each connection, it is no id, and "
                + "messages are lost: look at a second connection, and take it out then"
        }
    }

    /// Whether frames of other kinds have a value there too.
    func isOfOtherKinds(_ pointer: String, _ group: LearnedGroup) -> Bool {
        let indexes = Set(group.frames.map(\.index))
        let kinds = Set(group.frames.compactMap { evidence.kind(of: $0) })
        return evidence.received.contains { frame in
            // Messages of other rooms are messages too.
            !indexes.contains(frame.index) && !(evidence.kind(of: frame).map(kinds.contains) ?? false)
                && frame.value(pointer) != nil
        }
    }

    /// Places of messages whose values the answers to the app's own messages repeat.
    func answeredIDs(_ sent: [SentMessage], _ frames: [LearnedFrame], _ text: String) -> Set<String> {
        let indexes = Set(frames.map(\.index))
        let before = sent.first.map { first in evidence.received.filter { $0.index < first.frame.index } } ?? []
        var places: Set<String> = []
        for one in sent {
            guard
                let own = frames.first(where: {
                    $0.index > one.frame.index && $0.text(text) == one.frame.text(one.text)
                })
            else { continue }
            let answers = evidence.received.filter { $0.index > one.frame.index && !indexes.contains($0.index) }
            // What was there before, such as a name, is no id of the message.
            for leaf in own.single where leaf.pointer != text {
                guard let value = leaf.text, value.utf8.count > 1,
                    !one.frame.leaves.contains(where: { $0.text == value }),
                    !before.contains(where: { frame in frame.leaves.contains { $0.text == value } }),
                    answers.contains(where: { frame in frame.single.contains { $0.text == value } })
                else { continue }
                places.insert(leaf.pointer)
            }
        }
        return places
    }

    /// Says which constants of the template were others in another message of the app.
    mutating func sayConstants(_ sent: [SentMessage], _ frame: LearnedFrame, _ maker: TemplateMaker) {
        for leaf in frame.single where maker.places[leaf.pointer] == nil {
            let values = sent.compactMap { $0.frame.value(leaf.pointer) }
            guard let other = values.first(where: { $0 != leaf.value }) else { continue }
            let numbers = values.compactMap(\.integer)
            let counts = numbers.count == values.count && zip(numbers.dropFirst(), numbers).allSatisfy { $0 > $1 }
            reason(
                "encode.message: \(leaf.pointer) was \(other.text) in another message of the app, and is always "
                    + "\(leaf.value.text) in the template"
                    + (counts
                        ? ": a number that counts, for which a constant may do" : "; it is not understood, correct it"))
        }
    }
}
