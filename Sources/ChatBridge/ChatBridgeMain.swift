@main
struct ChatBridgeMain {
    static func main() {}
}
