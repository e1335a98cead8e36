package shop;

import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.time.Duration;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.stereotype.Component;
import org.springframework.web.filter.OncePerRequestFilter;

/** Checks each request before anything else sees it. */
@Component
@Order(Ordered.HIGHEST_PRECEDENCE)
public class LimitFilter extends OncePerRequestFilter {
    private final Tidegate tidegate = new Tidegate(
            setting("TIDEGATE_URL", "http://127.0.0.1:8080"),
            "shop",
            setting("TIDEGATE_FAIL", "open").equals("open"),
            Duration.ofMillis(Long.parseLong(setting("TIDEGATE_TIMEOUT_MS", "250"))));

    private static String setting(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }

    @Override
    protected void doFilterInternal(
            HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        Tidegate.Verdict verdict;
        try {
            verdict = tidegate.check(request.getRemoteAddr(), request.getMethod(), request.getRequestURI());
        } catch (InterruptedException stopping) {
            Thread.currentThread().interrupt();
            response.sendError(HttpServletResponse.SC_SERVICE_UNAVAILABLE);
            return;
        }
        verdict.headers().forEach(response::setHeader);
        if (verdict.passes()) {
            chain.doFilter(request, response);
            return;
        }
        response.setStatus(verdict.status());
        response.getWriter().write(verdict.body());
    }
}
