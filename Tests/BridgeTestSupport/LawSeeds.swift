import Foundation

/// The seeds of a law's random cases: a few in an ordinary run, as many as `CHATBRIDGE_LAW_ROUNDS` says in a long one.
public enum LawSeeds {
    public static func seeds(_ ordinary: Int) -> [UInt64] {
        let wanted = ProcessInfo.processInfo.environment["CHATBRIDGE_LAW_ROUNDS"].flatMap { Int($0) } ?? 0
        return (1...UInt64(max(ordinary, wanted))).map { $0 }
    }
}
