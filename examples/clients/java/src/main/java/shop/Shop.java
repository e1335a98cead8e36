package shop;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** A shop in Spring Boot. Start it with `mvn spring-boot:run`. */
@SpringBootApplication
@RestController
public class Shop {
    public static void main(String[] arguments) {
        SpringApplication.run(Shop.class, arguments);
    }

    @GetMapping(value = "/cart", produces = "text/plain")
    public String cart() {
        return "application: GET /cart\n";
    }
}
