import ChatModel

/// The times shown by the retained lines of a room, ascending, with repetitions.
///
/// Lines come and go mostly in the order of their times, so adding at the end and dropping at the front is cheap;
/// elsewhere the others are moved, which are few.
struct ShownTimes {
    private var times: [ChatTimestamp] = []
    /// Those before it are dropped, and are removed all at once.
    private var start = 0

    mutating func insert(_ time: ChatTimestamp) {
        times.insert(time, at: index(of: time))
    }

    /// Removes one line's time, if any line shows it.
    mutating func remove(_ time: ChatTimestamp) {
        let index = index(of: time)
        guard index < times.count, times[index] == time else { return }
        guard index == start else {
            times.remove(at: index)
            return
        }
        start += 1
        if start > times.count / 2 {
            times.removeFirst(start)
            start = 0
        }
    }

    func contains(_ time: ChatTimestamp) -> Bool {
        let index = index(of: time)
        return index < times.count && times[index] == time
    }

    /// The latest time before this one.
    func latest(before end: ChatTimestamp) -> ChatTimestamp? {
        let index = index(of: end)
        return index > start ? times[index - 1] : nil
    }

    /// The first time from here on that no line shows.
    func free(from time: ChatTimestamp) -> ChatTimestamp {
        var free = time
        for taken in times[index(of: time)...] where taken >= free {
            guard taken == free else { break }
            free = free.after(1)
        }
        return free
    }

    /// Where the first one stands that is not earlier than this.
    private func index(of time: ChatTimestamp) -> Int {
        guard let last = times.last, last >= time else { return times.count }
        var (low, high) = (start, times.count)
        while low < high {
            let middle = (low + high) / 2
            if times[middle] < time { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

extension ChatTimestamp {
    /// Later by so many milliseconds, saturating.
    package func after(_ pause: Int64) -> ChatTimestamp {
        let (sum, over) = milliseconds.addingReportingOverflow(pause)
        return ChatTimestamp(milliseconds: over ? .max : sum)
    }
}
