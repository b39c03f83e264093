import Foundation

/// The seeds of a law's random cases: a few in an ordinary run, as many as `CHATBRIDGE_LAW_ROUNDS` says in a long one, and
/// only the one that `CHATBRIDGE_LAW_SEED` names where something is looked for.
public enum LawSeeds {
    public static func seeds(_ ordinary: Int) -> [UInt64] {
        let environment = ProcessInfo.processInfo.environment
        if let only = environment["CHATBRIDGE_LAW_SEED"].flatMap({ UInt64($0) }) { return [only] }
        let wanted = environment["CHATBRIDGE_LAW_ROUNDS"].flatMap { Int($0) } ?? 0
        return (1...UInt64(max(ordinary, wanted))).map { $0 }
    }
}
